import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { languages } from "../../api/checkout/languages.ts";
import { findViolations } from "./axe.ts";
import { none, openPage } from "./browser.ts";
import type { Look } from "./look.ts";
import { makeLooks, openLook } from "./looks.ts";
import { findFaults } from "./markup.ts";
import { legal, openShop } from "./shop.ts";
import { openTills } from "./tills.ts";
import { listWays } from "./ways.ts";

const { api } = await openShop({ legal });
const looks = await makeLooks(await openTills(api));
/** Those that the server writes whole. */
const pages = looks.filter(({ before, reach }) => !before && !reach);
const pathOf = (wanted: string): string => pages.find(({ name }) => name === wanted)?.path ?? "";

/** Elements that stick out to the side, and buttons and links that are too small to be hit. */
function findMisfits(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const misfits: string[] = [];
    const over = document.documentElement.scrollWidth - innerWidth;
    if (over > 0) misfits.push(`${over} px too wide`);
    for (const one of document.querySelectorAll<HTMLElement>(
      "button, .button, input, select, textarea, summary, footer a, main a",
    )) {
      const { width, height } = one.getBoundingClientRect();
      const isChecked = one instanceof HTMLInputElement && ["checkbox", "radio"].includes(one.type);
      const isInText = one.matches("main a:not(.button)");
      if (width > 0 && (height < (isChecked || isInText ? 24 : 44) || width < 24))
        misfits.push(`${one.tagName} ${one.id} ${one.className}: ${width} x ${height}`);
    }
    return misfits;
  });
}

const phone = { width: 320, height: 640 };
const desktop = { width: 1280, height: 800 };

/**
 * What a buyer meets on his way is made of the same parts as what the server writes whole: it is seen on the first screen
 * of each language alone, which differ in everything. What the server writes is seen on all of them.
 */
const screens = {
  en: [
    { colorScheme: "light", viewport: phone },
    { colorScheme: "dark", viewport: desktop },
  ],
  ar: [
    { colorScheme: "dark", viewport: desktop },
    { colorScheme: "dark", viewport: phone },
    { colorScheme: "light", viewport: desktop },
  ],
} as const;

async function turnTo(page: Page, { colorScheme, viewport }: (typeof screens)["en" | "ar"][number]): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize(viewport);
}

/** What is wrong with what is on the screen, whatever is behind its folds. */
async function findWrongs(page: Page): Promise<string[]> {
  await page.evaluate(() => {
    for (const closed of document.querySelectorAll("details")) closed.open = true;
  });
  return [...(await findViolations(page)), ...(await findMisfits(page))];
}

test.concurrent.each(["en", "ar"] as const)(
  "no look has anything that axe finds wrong, sticks out, is too small, is not valid, or is told to the console: %s",
  async (lang) => {
    const [first, ...others] = screens[lang];
    const { page, misdeeds } = await openPage(api.url, first);
    const wrongs: Record<string, string[]> = {};
    for (const look of looks) {
      await openLook(page, api.url, look, lang);
      const found = [...(await findFaults(await page.content())), ...(await findWrongs(page))];
      for (const screen of pages.includes(look) ? others : []) {
        await turnTo(page, screen);
        found.push(...(await findWrongs(page)));
      }
      await turnTo(page, first);
      if (found.length > 0) wrongs[look.name] = found;
    }
    expect(wrongs).toEqual({});
    expect(misdeeds).toEqual(none);
  },
);

test("no look in which the buyer is told not to pay again has a way to pay beside it, on a computer and on a phone", async () => {
  const own = await makeLooks(await openTills(api));
  const findTold = async (some: readonly Look[], options: object) => {
    const told: Look[] = [];
    const { page } = await openPage(api.url, options);
    for (const look of some) {
      await openLook(page, api.url, look, "en");
      if (!/do not pay again/i.test(await page.locator("main").innerText())) continue;
      told.push(look);
      const focused = await page.evaluate(() => document.activeElement?.tagName);
      expect({ look: look.name, ways: await listWays(page), focused }).toMatchObject({ ways: [] });
      expect({ look: look.name, focused }).not.toMatchObject({ focused: "BUTTON" });
    }
    return told;
  };
  const told = await findTold(
    own.filter(({ name }) => name !== "searching"),
    {},
  );
  const names = told.map(({ name }) => name);
  for (const name of ["processing", "failed-unclear", "already-paying", "wallet-unclear", "sent-unclear"])
    expect(names).toContain(name);
  expect((await findTold(told, { hasTouch: true, isMobile: true })).map(({ name }) => name)).toEqual(names);
});

test.each(languages.map(({ tag }) => tag))(
  "%s fits 320 px, also with text of twice the size and wide spacing",
  async (tag) => {
    const { page } = await openPage(api.url, { viewport: { width: 320, height: 640 } });
    for (const { name, path } of pages) {
      await page.goto(new URL(`${path}${path.includes("?") ? "&" : "?"}lang=${tag}`, api.url).href);
      expect({ name, lang: await page.locator("html").getAttribute("lang") }).toEqual({ name, lang: tag });
      for (const closed of await page.locator("details").all())
        await closed.evaluate((one) => one.setAttribute("open", ""));
      await page.evaluate(() => {
        document.documentElement.style.fontSize = "200%";
        for (const one of document.querySelectorAll<HTMLElement>("body *")) {
          // WCAG 1.4.12.
          one.style.letterSpacing = "0.12em";
          one.style.wordSpacing = "0.16em";
          one.style.lineHeight = "1.5";
        }
      });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect({ name, over }).toEqual({ name, over: 0 });
    }
  },
);

test("forced colours, and no movement for who wants none", async () => {
  const { page } = await openPage(api.url, { forcedColors: "active", reducedMotion: "reduce" });
  for (const { name, path } of pages) {
    await page.goto(`${api.url}${path}`);
    expect({ name, violations: await findViolations(page) }).toEqual({ name, violations: [] });
    expect(await page.evaluate(() => document.getAnimations().length)).toBe(0);
  }
});

test("without script: amount, code, link, state and a way to look again", async () => {
  const { page } = await openPage(api.url, { javaScriptEnabled: false });
  const waiting = pathOf("requires_action");
  await page.goto(`${api.url}${waiting}`);
  for (const said of ["Pay $12.50 to Shop", "Nothing has been charged yet."])
    expect(await page.getByText(said).first().isVisible()).toBe(true);
  expect(await page.locator(".qr").isVisible()).toBe(true);
  expect(await page.getByRole("textbox", { name: "Payment link" }).inputValue()).toBe(`${api.url}${waiting}`);
  expect(await page.getByText("Copy", { exact: true }).isVisible()).toBe(false);
  expect(await page.locator("noscript p:visible").textContent()).toContain("This page does not update by itself");
  // Nothing reloads by itself until the buyer asks for it.
  expect(await page.locator("meta[http-equiv=refresh]").count()).toBe(0);
  await page.getByRole("link", { name: "Check every 10 seconds" }).click();
  expect(await page.locator("meta[http-equiv=refresh]").getAttribute("content")).toBe("10");
  await page.getByRole("link", { name: "Stop checking every 10 seconds" }).click();
  expect(await page.locator("meta[http-equiv=refresh]").count()).toBe(0);
  await page.goto(`${api.url}${pathOf("processing")}`);
  expect(await page.getByText("Test console", { exact: true }).isVisible()).toBe(false);
  expect(await page.locator("h1:visible").textContent()).toBe("Your payment is on its way");
});

test("a phone is offered wallets' own browsers by plain links, to the wallet's host; a desktop is not", async () => {
  const link = `${api.url}${pathOf("requires_action")}`;
  const phone = await openPage(api.url, { hasTouch: true, isMobile: true, javaScriptEnabled: false });
  await phone.page.goto(link);
  const open = phone.page.getByRole("link", { name: "Open in MetaMask" });
  expect(await open.isVisible()).toBe(true);
  expect(await open.getAttribute("href")).toBe(`https://link.metamask.io/dapp/${link.slice("http://".length)}`);
  const desktop = await openPage(api.url);
  await desktop.page.goto(link);
  expect(await desktop.page.getByRole("link", { name: "Open in MetaMask" }).isVisible()).toBe(false);
});
