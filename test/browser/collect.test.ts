import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../ops/local/networks-document.ts";
import { readCollected } from "../../payments/collect.ts";
import { addPolicy } from "../../payments/policies.ts";
import { none, openPage } from "./browser.ts";
import { bring, openShop } from "./shop.ts";

const { api, merchant, pay } = await openShop();
await addPolicy(api.deps, { merchantId: merchant.merchantId, asset: null, unit: null, minimum: null });
const buyer = privateKeyToAccount(newKey().privateKey);
const accounts = [`eip155:31337:${buyer.address}`];

type Option = { id: string; actions: [{ data: { params: [string, string] } }]; collectData: { url: string } | null };

/** A payment whose buyer is asked, and the page that asks him. */
async function ask() {
  const id = await pay();
  const { body } = await api.post(`/v1/gateway/payment/${id}/options`, merchant.wallet, { accounts });
  const [option] = body.options as [Option];
  if (!option.collectData) throw new Error("nothing is asked");
  return { id, option, url: option.collectData.url };
}

async function open(url: string, options: Parameters<typeof openPage>[1] = {}) {
  const opened = await openPage(api.url, options);
  await opened.page.goto(url);
  return opened;
}

type Opened = Awaited<ReturnType<typeof open>>;

/** Fills in what is asked, by keyboard alone. */
async function fillIn({ page }: Pick<Opened, "page">, name = "Zoë Ångström-Quux"): Promise<void> {
  await page.getByLabel("Full name").focus();
  await page.keyboard.insertText(name);
  for (const part of ["28", "2", "1990"]) {
    await page.keyboard.press("Tab");
    await page.keyboard.insertText(part);
  }
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.type("Swe");
  await page.keyboard.press("Tab");
  await page.keyboard.insertText("Uppsala 17");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
}

const send = ({ page }: Pick<Opened, "page">) => page.getByRole("button", { name: "Continue" }).press("Enter");
const done = ({ page }: Pick<Opened, "page">) => page.getByRole("heading", { name: "Done", level: 1 }).waitFor();
const OK = { type: "IC_COMPLETE", success: true };

test("by keyboard: what is given arrives sealed, and confirm needs no data any more", async () => {
  const { id, option, url } = await ask();
  const opened = await open(url);
  await fillIn(opened);
  await send(opened);
  await done(opened);
  expect(await opened.page.evaluate(() => document.activeElement?.id)).toBe("done-title");
  expect(await readCollected(api.deps, id)).toMatchObject([
    {
      fields: [
        { id: "fullName", value: "Zoë Ångström-Quux" },
        { id: "dob", value: "1990-02-28" },
        { id: "porCountry", value: "SE" },
        { id: "porAddress", value: "Uppsala 17" },
        { id: "tosConfirmed", value: "true" },
      ],
    },
  ]);
  const { types, ...rest } = JSON.parse(option.actions[0].data.params[1]);
  const { EIP712Domain: _, ...own } = types;
  const results = [{ type: "walletRpc", data: [await buyer.signTypedData({ ...rest, types: own })] }];
  const confirmed = await api.post(`/v1/gateway/payment/${id}/confirm?maxPollMs=1`, merchant.wallet, {
    optionId: option.id,
    results,
  });
  expect(confirmed.status).toBe(200);
  for (const secret of ["Ångström", "1990-02-28", "Uppsala"]) expect(api.lines.join("\n")).not.toContain(secret);
  expect(opened.misdeeds).toEqual(none);
});

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

test("what is wrong is told above and at the field, and nothing is sent", async () => {
  const { id, url } = await ask();
  const opened = await open(url);
  const { page } = opened;
  await send(opened);
  const summary = page.getByRole("alert").filter({ hasText: "Please look at this again" });
  await summary.waitFor();
  expect(await summary.getByRole("link").allTextContents()).toEqual([
    "Enter your full name, at most 200 characters",
    "Enter your date of birth: day, month and year with four digits",
    "Choose a country",
    "Enter the address, at most 200 characters",
    "Tick the box to go on",
  ]);
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("summary");
  await summary.getByRole("link").first().press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("fullName");
  expect(await page.getByLabel("Full name").getAttribute("aria-invalid")).toBe("true");
  await fillIn(opened);
  await page.getByLabel("Year").fill("2999");
  await send(opened);
  // The server knows what day it is.
  await expect
    .poll(() => summary.getByRole("link").allTextContents())
    .toEqual(["Enter your date of birth: day, month and year with four digits"]);
  expect(await readCollected(api.deps, id)).toEqual([]);
});

const who = { fullName: "Zoë Quux", dob: "1990-02-28", pobCountry: "SE", pobAddress: "Malmö", shoeSize: "43" };
const utf8 = Buffer.from(JSON.stringify(who));
test.each([
  ["base64url without padding", utf8.toString("base64url")],
  ["base64, escaped", encodeURIComponent(utf8.toString("base64"))],
  ["base64 with + as it is", utf8.toString("base64")],
  ["Latin-1", encodeURIComponent(Buffer.from(JSON.stringify(who), "latin1").toString("base64"))],
])("what the wallet knows already is filled in: %s", async (_name, text) => {
  const { url } = await ask();
  const { page } = await open(`${url}?prefill=${text}`);
  const values = await page
    .locator("input:not([type]), select, textarea")
    .evaluateAll((all) => all.map((one) => (one as HTMLInputElement).value));
  expect(values).toEqual(["Zoë Quux", "28", "02", "1990", "SE", "Malmö"]);
  expect(await page.getByRole("radio", { name: "Where I was born" }).isChecked()).toBe(true);
});

test.each(["%%%", "e30", "W10", "bnVsbA", "x".repeat(9_000), Buffer.from('{"fullName":7}').toString("base64")])(
  "a prefill that is none (%s) leaves an empty form",
  async (text) => {
    const { url } = await ask();
    const response = await fetch(`${url}?prefill=${text}`);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('aria-describedby="fullName-hint fullName-error" value=""');
  },
);

test("what was typed is still there after going on and back", async () => {
  const { url } = await ask();
  const opened = await open(url);
  await fillIn(opened);
  await opened.page.goto("about:blank");
  await opened.page.goBack();
  await expect.poll(() => opened.page.getByLabel("Full name").inputValue()).toBe("Zoë Ångström-Quux");
  expect(await opened.page.getByLabel("Year").inputValue()).toBe("1990");
});

test("a server that is away loses nothing: the form says so, and goes when it is back", async () => {
  const { id, url } = await ask();
  const opened = await open(url);
  await fillIn(opened);
  await opened.context.setOffline(true);
  await send(opened);
  await opened.page.getByText("Your details could not be saved.").waitFor();
  await opened.context.setOffline(false);
  await send(opened);
  await done(opened);
  expect(await readCollected(api.deps, id)).toHaveLength(1);
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

test("it reaches its opener and is framed by nobody", async () => {
  const { url } = await ask();
  const { headers } = await fetch(url);
  expect(headers.get("cross-origin-opener-policy")).toBe("unsafe-none");
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
});

declare global {
  interface Window {
    heard: (by: string, message: unknown) => unknown;
  }
}
