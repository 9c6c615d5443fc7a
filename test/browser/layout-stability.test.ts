import type { Page, Route } from "playwright-core";
import { expect, test } from "vitest";
import { en } from "../../api/checkout/texts/en.ts";
import { moveToState, openShop } from "./browser-shop.ts";
import { openPage } from "./open-browser.ts";
import { states } from "./payment-state-names.ts";
import { announceWallet } from "./wallet-fakes.ts";

const { api, pay, linkOf } = await openShop();

/** Returns the cumulative layout shift: movements that no input caused. */
const observe = `window.moved = 0;
  new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) moved += one.value; })
    .observe({ type: "layout-shift", buffered: true });`;

/** Waits for two frames, after which the browser has counted every shift of a change. */
const settled = (page: Page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

const screens = [
  ["a phone", { width: 390, height: 844 }],
  ["a small phone", { width: 320, height: 640 }],
  ["a computer", { width: 1_280, height: 800 }],
] as const;

/** Returns the positions of all visible elements, and the scroll offset. */
const findPlaces = (page: Page) =>
  page.evaluate(() => {
    // Without the spinner.
    const all = [...document.querySelectorAll("main, main *:not(svg, svg *), footer")];
    const places = all
      .filter((one) => one.checkVisibility())
      .map((one) => {
        const { top, height } = one.getBoundingClientRect();
        return `${one.tagName} ${one.id}: ${Math.round(top)}, ${Math.round(height)}`;
      });
    return { scrolled: scrollY, places };
  });

test.each(screens)(
  "a state change on %s leaves every element where a page that is opened in that state has it",
  async (_screen, viewport) => {
    const { page } = await openPage(api.url, { viewport, reducedMotion: "no-preference" });
    for (const state of states.filter((one) => one !== "requires_action")) {
      const id = await pay({ checkout: undefined });
      await page.goto(linkOf(id));
      await page.locator("#searching").filter({ hasText: "No wallet was found" }).waitFor();
      await page.locator("footer").scrollIntoViewIfNeeded();
      await moveToState(api, id, state);
      await page.locator(`#${state}`).waitFor();
      await settled(page);
      const live = await findPlaces(page);
      await page.reload();
      await page.locator(`#${state}`).waitFor();
      await settled(page);
      expect({ state, ...live }).toEqual({ state, ...(await findPlaces(page)) });
      expect(await page.locator("#facts").evaluate((one) => one.getBoundingClientRect().top < innerHeight)).toBe(true);
    }
  },
);

test.each(screens)(
  "a page on %s has no layout shift within a state, except after the buyer's input",
  async (_screen, viewport) => {
    const { page } = await openPage(api.url, { viewport, reducedMotion: "no-preference" });
    await page.addInitScript(observe);
    /** Longer than the time after an input in which browsers do not count shifts. */
    const later = () => page.waitForTimeout(700);
    const expectStill = async (what: string) => {
      await later();
      await settled(page);
      expect({ what, moved: await page.evaluate("moved") }).toEqual({ what, moved: 0 });
    };
    /**
     * Waits until the buyer's input has moved what it moves, and counts none of that: browsers excuse only the shifts of the
     * first 500 ms after an input.
     */
    const excuseInput = async () => {
      await later();
      await settled(page);
      await page.evaluate("moved = 0");
    };
    const hold = async (path: string, answer: (route: Route) => Promise<unknown>) => {
      const held = Promise.withResolvers<void>();
      await page.route(path, async (route) => {
        await held.promise;
        await answer(route);
      });
      return held.resolve;
    };
    const fail = (route: Route) =>
      route.fulfill({ status: 400, contentType: "application/json", body: '{"code":"invalid_params","message":""}' });

    await page.goto(linkOf(await pay({ checkout: undefined })));
    await page.locator("#searching").filter({ hasText: "No wallet was found" }).waitFor();
    await expectStill("no wallet is found");
    await announceWallet(page, { eth_signTypedData_v4: { value: `0x${"11".repeat(65)}` } });
    await expectStill("a wallet announces itself");
    await page.getByRole("button", { name: "Copy" }).click();
    await page.locator("#announcement:not(:empty)").waitFor({ state: "attached" });
    await excuseInput();
    await page.getByRole("button", { name: "Copy", exact: true }).waitFor();
    await expectStill("the link was copied");
    const list = await hold("**/options", (route) => route.continue());
    await page.getByRole("button", { name: "Orange Wallet" }).click();
    await page.locator("#step").filter({ hasText: en.loading }).waitFor();
    await excuseInput();
    list();
    await page.locator("#choices .main").first().waitFor();
    await expectStill("the ways to pay come");
    const refuse = await hold("**/confirm", fail);
    await page.locator("#choices .main").first().click();
    await page.locator("#step").filter({ hasText: en.handingIn }).waitFor();
    await excuseInput();
    refuse();
    await page.getByRole("alert").filter({ hasText: en.refused }).waitFor();
    await expectStill("the confirm is refused");

    const slow = await pay({ checkout: undefined });
    await page.route("**/?pid=*", async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replace(/"sinceMs":\d+/, '"sinceMs":28500');
      await route.fulfill({ response, body });
    });
    await moveToState(api, slow, "processing");
    await page.goto(linkOf(slow));
    await page.locator("#may-close:not(.later)").waitFor();
    await expectStill("the network takes its time");
  },
);
