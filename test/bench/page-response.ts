import type { Locator, Page } from "playwright-core";
import type { Say } from "../../ops/local/service.ts";
import { ask, createPayment, type Shop } from "../../ops/local/wallet.ts";
import { openPage } from "../browser/browser.ts";
import { answer, ended } from "../browser/fakes.ts";
import type { Look } from "../browser/look.ts";
import { openLook } from "../browser/looks.ts";
import { phone, slowDown } from "./page-slow.ts";
import { percentile } from "./stats.ts";

/** How often each is done; the median counts. */
const TIMES = 5;
/** An interaction is over when the next picture is on the screen; long enough to be told of it, milliseconds. */
const TOLD_MS = 400;

type Interaction = {
  name: string;
  look: string;
  /** What comes between the look and the finger. */
  ready?: (page: Page) => Promise<unknown>;
  target: (page: Page) => Locator;
};

const wallet = (page: Page): Locator => page.getByRole("button", { name: "Orange Wallet" });

const interactions: Interaction[] = [
  { name: "wallet button", look: "wallet", target: wallet },
  { name: "option", look: "choose", target: (page) => page.locator("#choices .main").first() },
  { name: "copy", look: "wallet", target: (page) => page.locator("#copy") },
  { name: "checkbox", look: "wallet", target: (page) => page.locator("#auto") },
  { name: "details", look: "wallet", target: (page) => page.locator("main details summary").last() },
  { name: "language list", look: "wallet", target: (page) => page.locator("footer summary") },
  { name: "stay", look: "leaving", target: (page) => page.locator("#stay") },
  {
    name: "console button",
    look: "test-console",
    ready: (page) => answer(page, "**/simulate", ended("cancelled", "none")),
    target: (page) => page.locator('#console [data-to="cancelled"]'),
  },
  { name: "submit with faults", look: "data", target: (page) => page.locator("#send") },
  {
    name: "submit",
    look: "data-prefilled",
    ready: async (page) => {
      await answer(page, "**/collect", {});
      await page.locator("#tos").check();
    },
    target: (page) => page.locator("#send"),
  },
];

/** The longest event of an interaction, from the finger to the picture, as the Event Timing API tells of it. */
const observe = `window.longest = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (one.interactionId) longest = Math.max(longest, one.duration);
  }).observe({ type: "event", durationThreshold: 16, buffered: true });`;

/**
 * How long each kind of interaction takes until the next picture, on a processor a quarter as fast: the median of some.
 * The longest of them is the page's INP. Milliseconds, in steps of 8 as browsers tell it, 0 for less than 16.
 */
export async function timeAnswers(
  origin: string,
  find: (look: string) => Look,
  say: Say,
): Promise<Map<string, number>> {
  const { page, context } = await openPage(origin, phone);
  await page.addInitScript(observe);
  await slowDown(page, { network: false });
  const answers = new Map<string, number>();
  for (const { name, look, ready, target } of interactions) {
    const all: number[] = [];
    for (let time = 0; time < TIMES; time += 1) {
      await openLook(page, origin, find(look), "en");
      await ready?.(page);
      await page.evaluate("void (longest = 0)");
      await target(page).tap();
      await page.waitForTimeout(TOLD_MS);
      all.push((await page.evaluate("longest")) as number);
    }
    answers.set(name, percentile(all, 0.5));
    say(`${name}: ${all.join(" ")} ms to the next picture`);
  }
  await context.close();
  return answers;
}

/** From the moment that a state has changed to the moment that the page shows it, milliseconds; nothing is slowed down. */
export async function timeChange(shop: Shop): Promise<number> {
  const all: number[] = [];
  const { page, context } = await openPage(shop.baseUrl, phone);
  for (let time = 0; time < TIMES; time += 1) {
    const id = await createPayment(shop, { referenceId: "order-17", cents: "1250" });
    const asked = page.waitForRequest("**/status?*");
    await page.goto(`${shop.baseUrl}/?pid=${id}`);
    await asked;
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
