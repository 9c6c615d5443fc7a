import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openPage } from "./browser.ts";
import { bring, openShop } from "./shop.ts";
import { states } from "./states.ts";

const { api, pay, linkOf } = await openShop();

/** What jumps without anybody having asked for it, as browsers add it up. */
const observe = `window.moved = 0;
  new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) moved += one.value; })
    .observe({ type: "layout-shift", buffered: true });`;

/** The next picture but one is on the screen: all of a change has been counted. */
const settled = (page: Page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

test.each([
  ["a phone", { width: 390, height: 844 }],
  ["a small phone", { width: 320, height: 640 }],
  ["a computer", { width: 1_280, height: 800 }],
])("a change of state moves nothing that stays on the screen of %s", async (_screen, viewport) => {
  const { page } = await openPage(api.url, { viewport });
  await page.addInitScript(observe);
  for (const state of states.filter((one) => one !== "requires_action")) {
    const id = await pay({ checkout: undefined });
    await page.goto(linkOf(id));
    await page.locator("#searching").filter({ hasText: "No wallet was found" }).waitFor();
    await settled(page);
    const before = (await page.evaluate("moved")) as number;
    await bring(api, id, state);
    await page.locator(`#${state}`).waitFor();
    await settled(page);
    expect({ state, moved: ((await page.evaluate("moved")) as number) - before }).toEqual({ state, moved: 0 });
  }
});
