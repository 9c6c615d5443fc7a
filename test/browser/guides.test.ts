import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { buildRepository } from "../support/guides/build-repository.ts";
import { runGuide } from "../support/guides/run-guide.ts";
import { startGuideStack } from "../support/guides/start-guide-stack.ts";
import { openPage } from "./open-browser.ts";

const { stack, dir, env } = await startGuideStack();
const repository = await buildRepository(dir);
const byHand = { "buy and pay in the browser": buyInTheBrowser };
const guides = readdirSync("docs/guides").map((name) => `docs/guides/${name}`);

/** A guide runs many programs one after the other, which takes a slow machine many minutes. */
const slow = { timeout: 1_200_000 };

/** Opens the shop whose address a terminal shows, buys, and pays with the test wallet of the checkout page. */
async function buyInTheBrowser(shown: string): Promise<void> {
  const { page } = await openPage(stack.baseUrl);
  await page.goto(/http:\/\/localhost:\d+/.exec(shown)?.[0] ?? "");
  await page.getByRole("button", { name: "Buy for $12.50" }).click();
  // This waits until the page is loaded, because a click before its script runs is lost.
  await page.waitForURL(`${stack.baseUrl}/**`);
  await page.locator("#console summary").click();
  await page.getByRole("button", { name: "Pay with a test wallet" }).click();
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor();
}

test.each(guides)("a reader of %s sees what it shows", slow, async (path) => {
  await expect(runGuide(path, { repository, env, byHand })).resolves.toBeUndefined();
});

test("a reader of the first payment in the README sees what it shows", slow, async () => {
  await expect(runGuide("README.md", { repository, env, section: "Your first payment" })).resolves.toBeUndefined();
});
