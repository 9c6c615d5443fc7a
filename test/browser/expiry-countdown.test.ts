import { setTimeout as pause } from "node:timers/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { ask } from "../../local/buyer-client.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { waitFor } from "../support/wait-for.ts";
import { shopUrls } from "./browser-shop.ts";
import { installWallets } from "./fake-evm-wallets.ts";
import { none, openPage } from "./open-browser.ts";
import { watchText } from "./watch-text.ts";

const chain = await startChain();
const fleet = await startFleet({ chain, workers: 1, ownUrl: true });
const buyer = await fundBuyer(chain);

const HOUR_MS = 3_600_000;
/** Longer than the page waits before it says that it may be closed. */
const SLOW_MS = 31_000;
const [pay, going] = ["Pay $12.50 to Corner shop", "Your payment is on its way"];
const mayClose = "You may close this page: Corner shop will be told.";

/** Opens the page of a payment in a browser whose clock is wrong by `wrongMs`, with a shop that responds. */
async function open(id: string, wrongMs: number) {
  const opened = await openPage(fleet.baseUrl);
  const { page, context } = opened;
  await page.addInitScript((by) => {
    const Real = Date;
    globalThis.Date = class extends Real {
      constructor(...given: [] | [number]) {
        super(...((given.length === 0 ? [Real.now() + by] : given) as [number]));
      }
      static override now = () => Real.now() + by;
    } as DateConstructor;
  }, wrongMs);
  await installWallets(context, chain, [{ name: "Beta", account: buyer }]);
  await context.route("https://shop.example.test/**", (route) => route.fulfill({ contentType: "text/html", body: "" }));
  const words = await watchText(page);
  await page.goto(`${fleet.baseUrl}/?pid=${id}`);
  return { ...opened, words };
}

/** Returns the remaining time that the page shows, seconds. */
async function readTimer(page: Page): Promise<number> {
  const [minutes = 0, seconds = 0] = ((await page.getByRole("timer").textContent()) ?? "").split(":").map(Number);
  return minutes * 60 + seconds;
}

async function askLeft(id: string): Promise<number> {
  const { leftMs } = (await ask(fleet.shop, "GET", `/checkout/${id}/status`)) as { leftMs: number };
  return leftMs / 1_000;
}

test("the page keeps its state and ends as the chain does without a block for 30 s and with clocks that are wrong by an hour", async () => {
  const amount = { unit: "iso4217/USD", value: "1250" };
  const { id } = (await ask(fleet.shop, "POST", "/v1/payments", { amount, checkout: shopUrls })) as { id: string };
  const [early, late] = [await open(id, -HOUR_MS), await open(id, HOUR_MS)];
  await pause(1_500);
  for (const { page } of [early, late]) {
    const before = await askLeft(id);
    const shown = await readTimer(page);
    // Half a second more and 1.5 s less on an idle machine. A page that trusted its own clock would be wrong by an hour.
    expect(shown).toBeLessThanOrEqual(before + 60);
    expect(shown).toBeGreaterThanOrEqual((await askLeft(id)) - 60);
  }

  await chain.client.setAutomine(false);
  await late.page.getByRole("button", { name: "Beta" }).click();
  await late.page.getByRole("button", { name: "12.50 USDC" }).click();
  const isGoing = () => [early, late].every(({ words }) => words.at(-1) === going);
  await waitFor(isGoing, { within: 25_000, what: "both pages say that it is on its way" });
  for (const { page } of [early, late]) expect(await page.getByText(mayClose).isVisible()).toBe(false);
  await pause(SLOW_MS);

  // A page that is opened only then, without script, shows the same.
  const third = await openPage(fleet.baseUrl, { javaScriptEnabled: false });
  await third.page.goto(`${fleet.baseUrl}/?pid=${id}`);
  for (const { page } of [early, late, third]) {
    await page.getByText(mayClose).waitFor();
    const text = await page.locator("main").innerText();
    expect(text).toContain(going);
    expect(text).toContain("Do not pay again.");
    expect(text).toContain(mayClose);
    expect(text.replaceAll("Do not pay again.", "")).not.toMatch(
      /fail|expired|time is up|cancel|pay again|nothing was charged/i,
    );
    expect(await page.getByRole("button", { name: /Beta|USDC/ }).count()).toBe(0);
    expect(page.url()).toBe(`${fleet.baseUrl}/?pid=${id}`);
  }
  for (const { words } of [early, late]) expect(words).toEqual([pay, going]);

  await chain.client.setAutomine(true);
  await mine(chain, 2);
  for (const { page, words, pageErrors } of [early, late]) {
    await page.waitForURL(`${shopUrls.successUrl}&payment_id=${id}`);
    expect(words.slice(0, 3)).toEqual([pay, going, "Paid"]);
    expect(pageErrors).toEqual(none);
  }
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});
