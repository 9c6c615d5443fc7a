import type { Locator, Page } from "playwright-core";
import { ask, createPayment, type Shop } from "../../local/buyer-client.ts";
import type { Say } from "../../local/service.ts";
import { openPage } from "../browser/open-browser.ts";
import type { View } from "../browser/page-view.ts";
import { openView } from "../browser/page-views.ts";
import { answer, ended } from "../browser/wallet-fakes.ts";
import { percentile } from "./bench-stats.ts";
import { phone, slowDown } from "./slow-network.ts";

/** The number of runs of each interaction, of which the median counts. */
const TIMES = 5;
/** How long to wait for the event timing entry after the next paint, milliseconds. */
const EVENT_ENTRY_WAIT_MS = 400;

type Interaction = {
  name: string;
  view: string;
  /** Prepares the page between the view and the interaction. */
  ready?: (page: Page) => Promise<unknown>;
  target: (page: Page) => Locator;
};

const wallet = (page: Page): Locator => page.getByRole("button", { name: "Orange Wallet" });

const interactions: Interaction[] = [
  { name: "wallet button", view: "wallet", target: wallet },
  { name: "option", view: "choose", target: (page) => page.locator("#choices .main").first() },
  { name: "copy", view: "wallet", target: (page) => page.locator("#copy") },
  { name: "checkbox", view: "wallet", target: (page) => page.locator("#auto") },
  { name: "details", view: "wallet", target: (page) => page.locator("main details summary").last() },
  { name: "language list", view: "wallet", target: (page) => page.locator("footer summary") },
  { name: "stay", view: "leaving", target: (page) => page.locator("#stay") },
  {
    name: "console button",
    view: "test-console",
    ready: (page) => answer(page, "**/simulate", ended("cancelled", "none")),
    target: (page) => page.locator('#console [data-to="cancelled"]'),
  },
  { name: "submit with errors", view: "data", target: (page) => page.locator("#send") },
  {
    name: "submit",
    view: "data-prefilled",
    ready: async (page) => {
      await answer(page, "**/collect", {});
      await page.locator("#tos").check();
    },
    target: (page) => page.locator("#send"),
  },
];

/** Records the longest event of an interaction, from input to paint, by the Event Timing API. */
const observe = `window.longest = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (one.interactionId) longest = Math.max(longest, one.duration);
  }).observe({ type: "event", durationThreshold: 16, buffered: true });`;

/**
 * Returns the median time from each interaction to the next paint, on a CPU that is throttled to a quarter. The longest of
 * them is the page's INP. In milliseconds, in the browser's steps of 8, and 0 below 16.
 */
export async function timeInteractions(
  origin: string,
  find: (view: string) => View,
  say: Say,
): Promise<Map<string, number>> {
  const { page, context } = await openPage(origin, phone);
  await page.addInitScript(observe);
  await slowDown(page, { network: false });
  const answers = new Map<string, number>();
  for (const { name, view, ready, target } of interactions) {
    const all: number[] = [];
    for (let time = 0; time < TIMES; time += 1) {
      await openView(page, origin, find(view), "en");
      await ready?.(page);
      await page.evaluate("void (longest = 0)");
      await target(page).tap();
      await page.waitForTimeout(EVENT_ENTRY_WAIT_MS);
      all.push((await page.evaluate("longest")) as number);
    }
    answers.set(name, percentile(all, 0.5));
    say(`${name}: ${all.join(" ")} ms to the next paint`);
  }
  await context.close();
  return answers;
}

/** Returns the time from a state change until the page shows it, milliseconds, without throttling. */
export async function timeChange(shop: Shop): Promise<number> {
  const all: number[] = [];
  const { page, context } = await openPage(shop.baseUrl, phone);
  for (let time = 0; time < TIMES; time += 1) {
    const id = await createPayment(shop, { referenceId: "order-17", cents: "1250" });
    const polled = page.waitForRequest("**/status?*");
    await page.goto(`${shop.baseUrl}/?pid=${id}`);
    await polled;
    const changed = ask(shop, "POST", `/checkout/${id}/simulate`, { status: "processing" }).then(() =>
      performance.now(),
    );
    await page.locator("#processing").waitFor();
    const shown = performance.now();
    all.push(shown - (await changed));
  }
  await context.close();
  return percentile(all, 0.5);
}
