import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { moveToState, openShop, shopUrls } from "./browser-shop.ts";
import { openPage } from "./open-browser.ts";

// Every test waits longer than a countdown, so they run concurrently, each with its own page.
const { api, pay, linkOf } = await openShop();

// Pages are opened one at a time: opening is the expensive part.
let last: Promise<unknown> = Promise.resolve();
function open(more: object = {}, query = "") {
  const opening = last.then(() => openOne(more, query));
  last = opening.catch(() => undefined);
  return opening;
}

/** Opens the page of a payment from the shop's cart, and records the navigations to the shop. */
async function openOne(more: object, query: string) {
  const id = await pay(more);
  const { page, context } = await openPage(api.url);
  const wentTo: string[] = [];
  await context.route(/^https:\/\/(shop|evil)\.example\.test\//, (route) => {
    wentTo.push(route.request().url());
    return route.fulfill({ contentType: "text/html", body: `<h1>The shop</h1><a href="${linkOf(id, query)}">Pay</a>` });
  });
  await page.goto(`${shop}/cart`);
  await page.getByRole("link", { name: "Pay" }).click();
  // This waits until the page is loaded, because a click or a key before its script runs is lost.
  await page.waitForURL(`${api.url}/**`);
  await page.locator("h1").filter({ hasText: "Shop" }).first().waitFor();
  wentTo.length = 0;
  return { id, page, wentTo };
}

const shop = "https://shop.example.test";
const success = (id: string): string => `${shopUrls.successUrl}&payment_id=${id}`;
const heading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true, level: 1 });
/** Waits long enough after the countdown to be sure that no navigation follows. */
const wellOver = (page: Page) => page.waitForTimeout(5_000);

type Leaving = { updateDelayMs: number; said: string | null | undefined };

/** Measures in the page itself, independent of the machine's load, the time from the result to the navigation. */
async function measure(page: Page): Promise<Leaving[]> {
  const seen: Leaving[] = [];
  await page.exposeFunction("left", (leaving: Leaving) => void seen.push(leaving));
  await page.evaluate(() => {
    const { left, navigation } = window as unknown as { left: (leaving: Leaving) => void; navigation: EventTarget };
    const title = document.getElementById("succeeded-title") as HTMLElement;
    let shown = Number.NaN;
    new MutationObserver(() => {
      if (title.checkVisibility() && Number.isNaN(shown)) shown = performance.now();
    }).observe(document.body, { subtree: true, attributes: true });
    const said = document.querySelector("[role=status]");
    navigation.addEventListener("navigate", () =>
      left({ updateDelayMs: performance.now() - shown, said: said?.textContent }),
    );
  });
  return seen;
}

/** Clicks an element, or presses a key, in the page itself as soon as the element is visible. */
const actAtOnce = (page: Page, id: string, key?: string): Promise<void> =>
  page.evaluate(
    ([id, key]) => {
      const one = document.getElementById(id as string) as HTMLElement;
      new MutationObserver((_changes, observer) => {
        if (!one.checkVisibility()) return;
        observer.disconnect();
        if (key) document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        else one.click();
      }).observe(document.body, { subtree: true, attributes: true });
    },
    [id, key],
  );

test.concurrent("the page returns to the shop three seconds after the end, and Back leads to the page before the payment", async () => {
  const { id, page, wentTo } = await open();
  const seen = await measure(page);
  await moveToState(api, id, "succeeded");
  await page.waitForURL(success(id));
  await waitFor(() => seen.length > 0, { within: 20_000, what: "the page reports its navigation" });
  expect(seen).toEqual([{ updateDelayMs: expect.any(Number), said: "Paid You go back to Shop in 3 s." }]);
  // 3.0 to 3.6 s on an idle machine. A busy one shows the result some time after the countdown has begun, and ends it late.
  expect(seen[0]?.updateDelayMs).toBeGreaterThan(2_000);
  expect(seen[0]?.updateDelayMs).toBeLessThan(10_000);
  expect(wentTo).toEqual([success(id)]);
  await page.goBack();
  expect(page.url()).toBe(`${shop}/cart`);
  await heading(page, "The shop").waitFor();
});

test.concurrent("a buyer who leaves before the countdown ends navigates to the shop once and is not redirected again after coming back", async () => {
  const { id, page, wentTo } = await open();
  const back = page.getByRole("link", { name: "Back to Shop" });
  await page.context().route(success(id), async (route) => {
    // The shop responds more slowly than the countdown.
    await wellOver(page);
    await route.fallback();
  });
  await actAtOnce(page, "back");
  await moveToState(api, id, "succeeded");
  await page.waitForURL(success(id));
  expect(wentTo).toEqual([success(id)]);
  await page.goBack();
  await heading(page, "Paid").waitFor();
  await wellOver(page);
  expect(page.url()).toBe(linkOf(id));
  expect(wentTo).toEqual([success(id)]);
  await back.click();
  await page.waitForURL(success(id));
});

test.concurrent.each(["failed", "expired", "cancelled"] as const)(
  "a payment that is %s leads only to the error URL",
  async (state) => {
    const { id, page, wentTo } = await open();
    await moveToState(api, id, state);
    await page.waitForURL(`${shopUrls.errorUrl}?payment_id=${id}`);
    expect(wentTo).toEqual([`${shopUrls.errorUrl}?payment_id=${id}`]);
  },
);

test.concurrent("the page leads only to the URLs that the shop has stored, whatever the link contains", async () => {
  const evil = encodeURIComponent("https://evil.example.test/");
  const names = ["successUrl", "errorUrl", "returnUrl", "redirect", "url", "back"];
  const query = `${names.map((name) => `&${name}=${evil}`).join("")}&payment_id=pay_other&status=succeeded`;
  const [paid, failed] = [await open({}, query), await open({}, query)];
  expect(await paid.page.locator("a[href*='evil.example']:not(footer a)").count()).toBe(0);
  await moveToState(api, paid.id, "succeeded");
  await moveToState(api, failed.id, "expired");
  await paid.page.waitForURL(success(paid.id));
  await failed.page.waitForURL(`${shopUrls.errorUrl}?payment_id=${failed.id}`);
  expect([...paid.wentTo, ...failed.wentTo].filter((url) => !url.startsWith(shop))).toEqual([]);
});

test.concurrent("a payment in processing does not lead to the shop yet", async () => {
  const { id, page, wentTo } = await open();
  await moveToState(api, id, "processing");
  await heading(page, "Your payment is on its way").waitFor();
  await wellOver(page);
  expect(wentTo).toEqual([]);
});

test.concurrent.each([
  ["the checkbox beforehand", (page: Page) => page.getByRole("checkbox").uncheck()],
  ["Escape", (page: Page) => actAtOnce(page, "stay", "Escape")],
  ["the button", (page: Page) => actAtOnce(page, "stay")],
])("the buyer can stop the countdown by %s, and the link to the shop remains", async (_what, stay) => {
  const { id, page, wentTo } = await open();
  await stay(page);
  await moveToState(api, id, "succeeded");
  await heading(page, "Paid").waitFor();
  await wellOver(page);
  expect(wentTo).toEqual([]);
  const back = page.getByRole("link", { name: "Back to Shop" });
  expect(await back.getAttribute("href")).toBe(success(id));
  await back.click();
  await page.waitForURL(success(id));
});

test.concurrent("the page stays and shows the end of the payment when one of the two URLs is invalid", async () => {
  const { id, page, wentTo } = await open({ checkout: { ...shopUrls, errorUrl: "nonsense" } });
  expect(await page.getByRole("checkbox").count()).toBe(0);
  await moveToState(api, id, "succeeded");
  await page.getByText("You can close this page.").waitFor();
  await wellOver(page);
  expect(wentTo).toEqual([]);
  expect(await page.getByRole("link", { name: "Back to Shop" }).count()).toBe(0);
});

test.concurrent("an app with the page in its web view receives the end once, over the channel that it has", async () => {
  for (const [channel, state, message] of [
    ["ReactNativeWebView", "succeeded", { type: "PAY_SUCCESS", success: true, message: "Paid" }],
    ["webkit", "expired", { type: "PAY_FAILURE", success: false, error: "The time is up" }],
    ["both", "succeeded", { type: "PAY_SUCCESS", success: true, message: "Paid" }],
  ] as const) {
    const id = await pay({ checkout: undefined });
    const { page } = await openPage(api.url);
    const received: unknown[] = [];
    await page.exposeFunction("hear", (text: unknown) => void received.push(text));
    await page.addInitScript((kind) => {
      const { hear } = window as unknown as { hear: (text: unknown) => void };
      const own = { postMessage: (text: unknown) => hear(text) };
      if (kind !== "webkit") Object.assign(window, { ReactNativeWebView: own });
      if (kind !== "ReactNativeWebView")
        Object.assign(window, { webkit: { messageHandlers: { ReactNativeWebView: own } } });
    }, channel);
    await page.goto(linkOf(id, "&returnUrl=mywallet%3A%2F%2Fdone&preferUniversalLinks=1"));
    await moveToState(api, id, state);
    const back = page.getByRole("link", { name: "Back to the app" });
    await back.waitFor();
    await waitFor(() => received.length > 0, { within: 20_000 });
    expect(await back.getAttribute("href")).toBe("mywallet://done");
    expect({ channel, received: received.map((text) => JSON.parse(text as string)) }).toEqual({
      channel,
      received: [message],
    });
  }
});

test.concurrent("a link that names an app shows no link to that app in a plain browser", async () => {
  const id = await pay({ checkout: undefined });
  const { page } = await openPage(api.url);
  await page.goto(linkOf(id, "&returnUrl=mywallet%3A%2F%2Fdone"));
  await moveToState(api, id, "succeeded");
  await page.getByText("You can close this page.").waitFor();
  expect(await page.locator("#app").count()).toBe(1);
  expect(await page.locator("#app").isVisible()).toBe(false);
});
