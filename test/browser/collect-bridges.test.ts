import { expect, test } from "vitest";
import { readCollected } from "../../payments/buyer-data/collected-data.ts";
import { waitFor } from "../support/wait-for.ts";
import { moveToState } from "./browser-shop.ts";
import { done, fillIn, OK, openShopWithDataPolicy, send } from "./data-form-helpers.ts";
import { openPage } from "./open-browser.ts";

const { api, ask } = await openShopWithDataPolicy(`eip155:31337:0x${"c1".repeat(20)}`);

/** The bridges that wallets' web views provide; `received` records the messages of each. */
const bridges: Record<string, () => void> = {
  ReactNative: () => {
    Object.assign(window, {
      ReactNativeWebView: { postMessage: (text: string) => window.received("ReactNative", JSON.parse(text)) },
    });
  },
  Android: () => {
    const wallet = {
      onDataCollectionComplete(this: unknown, text: string) {
        // A function that an app injects works only as a method of its own object.
        if (this === wallet) window.received("Android", JSON.parse(text));
      },
    };
    Object.assign(window, { AndroidWallet: wallet });
  },
  "iOS that reads objects": () => {
    const postMessage = (message: unknown) => typeof message === "object" && window.received("iOS", message);
    Object.assign(window, { webkit: { messageHandlers: { payDataCollectionComplete: { postMessage } } } });
  },
  "iOS that reads texts": () => {
    const postMessage = (message: unknown) =>
      typeof message === "string" && window.received("iOS", JSON.parse(message));
    Object.assign(window, { webkit: { messageHandlers: { payDataCollectionComplete: { postMessage } } } });
  },
  "a wrapper that calls itself, beside one that works": () => {
    const postMessage = (text: string): void => postMessage(text);
    Object.assign(window, { ReactNativeWebView: { postMessage } });
    Object.assign(window, {
      AndroidWallet: { onDataCollectionComplete: (text: string) => window.received("Android", JSON.parse(text)) },
    });
  },
  "iOS with the channel under its own name": () => {
    const postMessage = (text: string) => window.received("ReactNative", JSON.parse(text));
    Object.assign(window, { webkit: { messageHandlers: { ReactNativeWebView: { postMessage } } } });
  },
};

test.each(Object.entries(bridges))(
  "%s receives one message, after the server has stored the data",
  async (_name, bridge) => {
    const { id, url } = await ask();
    const received: [string, unknown][] = [];
    const opened = await openPage(api.url);
    await opened.page.exposeFunction("received", async (by: string, message: unknown) => {
      expect(await readCollected(api.deps, id)).toHaveLength(1);
      received.push([by, message]);
    });
    await opened.page.addInitScript(bridge);
    await opened.page.goto(url);
    await fillIn(opened);
    expect(received).toEqual([]);
    await send(opened);
    await done(opened);
    await waitFor(() => received.length > 0, { within: 20_000, what: "the message" });
    // A second message would come soon.
    await opened.page.waitForTimeout(2_000);
    expect(received.map(([, message]) => message)).toEqual([OK]);
  },
);

test("a popup notifies the window that opened it and stays open with a visible result", async () => {
  const { url } = await ask();
  const opened = await openPage(api.url);
  await opened.context.route("https://wallet.example.test/", (route) =>
    route.fulfill({ contentType: "text/html", body: "<title>Wallet</title>" }),
  );
  await opened.page.goto("https://wallet.example.test/");
  const popups = opened.context.waitForEvent("page");
  await opened.page.evaluate((to) => {
    Object.assign(window, { got: [] });
    addEventListener("message", ({ data }) => (window as unknown as { got: unknown[] }).got.push(JSON.parse(data)));
    open(to);
  }, url);
  const page = await popups;
  await fillIn({ page });
  await send({ page });
  await done({ page });
  await expect.poll(() => opened.page.evaluate(() => (window as unknown as { got: unknown[] }).got)).toEqual([OK]);
  await page.getByRole("button", { name: "Tell the wallet again" }).click();
  await expect.poll(() => opened.page.evaluate(() => (window as unknown as { got: unknown[] }).got)).toEqual([OK, OK]);
});

test("the page of a finished payment sends the wallet an error", async () => {
  const { id, url } = await ask();
  const received: unknown[] = [];
  const opened = await openPage(api.url);
  await opened.page.exposeFunction("received", (_by: string, message: unknown) => void received.push(message));
  await opened.page.addInitScript(bridges["ReactNative"] as () => void);
  await opened.page.goto(url);
  await fillIn(opened);
  await moveToState(api, id, "expired");
  await send(opened);
  await opened.page.locator("#ended").waitFor();
  const ERROR = { type: "IC_ERROR", error: expect.any(String) };
  await expect.poll(() => received).toEqual([ERROR]);
  await opened.page.reload();
  await expect.poll(() => received).toEqual([ERROR, ERROR]);
  expect((await fetch(url.replace(/opt_\w+/, "opt_none"))).status).toBe(404);
});

declare global {
  interface Window {
    received: (by: string, message: unknown) => unknown;
  }
}
