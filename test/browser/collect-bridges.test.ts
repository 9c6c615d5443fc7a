import { expect, test } from "vitest";
import { readCollected } from "../../payments/collect.ts";
import { openPage } from "./browser.ts";
import { done, fillIn, OK, openAskingShop, send } from "./collect-form.ts";
import { bring } from "./shop.ts";

const { api, ask } = await openAskingShop(`eip155:31337:0x${"c1".repeat(20)}`);

/** The bridges of wallets, as their web views put them there; `heard` is what came over which. */
const bridges: Record<string, () => void> = {
  ReactNative: () => {
    Object.assign(window, {
      ReactNativeWebView: { postMessage: (text: string) => window.heard("ReactNative", JSON.parse(text)) },
    });
  },
  Android: () => {
    const wallet = {
      onDataCollectionComplete(this: unknown, text: string) {
        // A function that an app has injected works on its own object only.
        if (this === wallet) window.heard("Android", JSON.parse(text));
      },
    };
    Object.assign(window, { AndroidWallet: wallet });
  },
  "iOS that reads objects": () => {
    const postMessage = (message: unknown) => typeof message === "object" && window.heard("iOS", message);
    Object.assign(window, { webkit: { messageHandlers: { payDataCollectionComplete: { postMessage } } } });
  },
  "iOS that reads texts": () => {
    const postMessage = (message: unknown) => typeof message === "string" && window.heard("iOS", JSON.parse(message));
    Object.assign(window, { webkit: { messageHandlers: { payDataCollectionComplete: { postMessage } } } });
  },
  "a wrapper that calls itself, beside one that works": () => {
    const postMessage = (text: string): void => postMessage(text);
    Object.assign(window, { ReactNativeWebView: { postMessage } });
    Object.assign(window, {
      AndroidWallet: { onDataCollectionComplete: (text: string) => window.heard("Android", JSON.parse(text)) },
    });
  },
  "iOS with the channel under its own name": () => {
    const postMessage = (text: string) => window.heard("ReactNative", JSON.parse(text));
    Object.assign(window, { webkit: { messageHandlers: { ReactNativeWebView: { postMessage } } } });
  },
};

test.each(Object.entries(bridges))("%s is told once, after the server has it", async (_name, bridge) => {
  const { id, url } = await ask();
  const heard: [string, unknown][] = [];
  const opened = await openPage(api.url);
  await opened.page.exposeFunction("heard", async (by: string, message: unknown) => {
    expect(await readCollected(api.deps, id)).toHaveLength(1);
    heard.push([by, message]);
  });
  await opened.page.addInitScript(bridge);
  await opened.page.goto(url);
  await fillIn(opened);
  expect(heard).toEqual([]);
  await send(opened);
  await done(opened);
  await opened.page.waitForTimeout(2_000);
  expect(heard.map(([, message]) => message)).toEqual([OK]);
});

test("a pop-up tells the window that has opened it, and stays on a visible end", async () => {
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

test("a payment that is over tells the wallet that the page cannot go on", async () => {
  const { id, url } = await ask();
  const heard: unknown[] = [];
  const opened = await openPage(api.url);
  await opened.page.exposeFunction("heard", (_by: string, message: unknown) => void heard.push(message));
  await opened.page.addInitScript(bridges.ReactNative as () => void);
  await opened.page.goto(url);
  await fillIn(opened);
  await bring(api, id, "expired");
  await send(opened);
  await opened.page.locator("#ended").waitFor();
  const ERROR = { type: "IC_ERROR", error: expect.any(String) };
  expect(heard).toEqual([ERROR]);
  await opened.page.reload();
  await expect.poll(() => heard).toEqual([ERROR, ERROR]);
  expect((await fetch(url.replace(/opt_\w+/, "opt_none"))).status).toBe(404);
});

declare global {
  interface Window {
    heard: (by: string, message: unknown) => unknown;
  }
}
