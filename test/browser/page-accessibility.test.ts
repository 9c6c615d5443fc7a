import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { languages } from "../../api/checkout/texts/languages.ts";
import { findViolations } from "./axe-violations.ts";
import { legal, openShop } from "./browser-shop.ts";
import { listPaymentWays } from "./list-payment-methods.ts";
import { findMarkupErrors } from "./markup-errors.ts";
import { none, openPage } from "./open-browser.ts";
import type { View } from "./page-view.ts";
import { makeViews, openView } from "./page-views.ts";
import { openViewMerchants } from "./view-merchants.ts";

const { api } = await openShop({ legal });
const views = await makeViews(await openViewMerchants(api));
/** The views that the server renders completely. */
const pages = views.filter(({ before, reach }) => !before && !reach);
const pathOf = (wanted: string): string => pages.find(({ name }) => name === wanted)?.path ?? "";

/** Returns elements that overflow horizontally, and buttons and links that are too small. */
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
 * Steps of a payment use the same elements as the pages that the server renders, so they are checked only on the first
 * screen of each language; those two screens differ in everything. Server-rendered pages are checked on every screen.
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

async function setScreen(page: Page, { colorScheme, viewport }: (typeof screens)["en" | "ar"][number]): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize(viewport);
}

/** Returns the errors of the page, including those in collapsed parts. */
async function findWrongs(page: Page): Promise<string[]> {
  await page.evaluate(() => {
    for (const closed of document.querySelectorAll("details")) closed.open = true;
  });
  return [...(await findViolations(page)), ...(await findMisfits(page))];
}

/** Returns whether the view tells the buyer in English not to pay again. Expects that it then offers no way to pay. */
async function isWarning(page: Page, view: View): Promise<boolean> {
  if (!/do not pay again/i.test(await page.locator("main").innerText())) return false;
  const focused = await page.evaluate(() => document.activeElement?.tagName);
  expect({ view: view.name, ways: await listPaymentWays(page), focused }).toMatchObject({ ways: [] });
  expect({ view: view.name, focused }).not.toMatchObject({ focused: "BUTTON" });
  return true;
}

/** Both tests open dozens of pages, which takes a slow machine many minutes. */
const slow = { timeout: 1_200_000 };

/** Opens every view in a language and checks it. Returns the views that tell the buyer in English not to pay again. */
async function checkViews(lang: "en" | "ar"): Promise<View[]> {
  const [first, ...others] = screens[lang];
  const { page, pageErrors } = await openPage(api.url, { ...first, reducedMotion: "no-preference" });
  const wrongs: Record<string, string[]> = {};
  const warning: View[] = [];
  for (const view of views) {
    await openView(page, api.url, view, lang);
    if (view.name !== "searching" && (await isWarning(page, view))) warning.push(view);
    const found = [...(await findMarkupErrors(await page.content())), ...(await findWrongs(page))];
    for (const screen of pages.includes(view) ? others : []) {
      await setScreen(page, screen);
      found.push(...(await findWrongs(page)));
    }
    await setScreen(page, first);
    if (found.length > 0) wrongs[view.name] = found;
  }
  expect(wrongs).toEqual({});
  expect(pageErrors).toEqual(none);
  return warning;
}

test.concurrent(
  "no view in Arabic has axe violations, overflow, small targets, invalid markup or console errors",
  slow,
  async () => {
    await checkViews("ar");
  },
);

test.concurrent(
  "no view in English has them either, and none that tells the buyer not to pay again offers a way to pay, on a computer or a phone",
  slow,
  async () => {
    const warning = await checkViews("en");
    const names = warning.map(({ name }) => name);
    for (const name of ["processing", "failed-unclear", "already-paying", "wallet-unclear", "sent-unclear"])
      expect(names).toContain(name);
    const { page } = await openPage(api.url, { hasTouch: true, isMobile: true });
    for (const view of warning) {
      await openView(page, api.url, view, "en");
      expect({ name: view.name, warns: await isWarning(page, view) }).toEqual({ name: view.name, warns: true });
    }
  },
);

test.each(languages.map(({ tag }) => tag))(
  "the pages in %s fit 320 px, also with text of twice the size and wide spacing",
  async (tag) => {
    const { page } = await openPage(api.url, { viewport: { width: 320, height: 640 } });
    for (const { name, path } of pages) {
      await page.goto(new URL(`${path}${path.includes("?") ? "&" : "?"}lang=${tag}`, api.url).href);
      // One call: the calls of ten languages would take more processor time than the pages.
      const { lang, over } = await page.evaluate(() => {
        for (const closed of document.querySelectorAll("details")) closed.open = true;
        document.documentElement.style.fontSize = "200%";
        for (const one of document.querySelectorAll<HTMLElement>("body *")) {
          // WCAG 1.4.12.
          one.style.letterSpacing = "0.12em";
          one.style.wordSpacing = "0.16em";
          one.style.lineHeight = "1.5";
        }
        const { lang, scrollWidth } = document.documentElement;
        return { lang, over: scrollWidth - innerWidth };
      });
      expect({ name, lang }).toEqual({ name, lang: tag });
      expect({ name, over }).toEqual({ name, over: 0 });
    }
  },
);

test("the pages work in forced colours and have no animations with reduced motion", async () => {
  const { page } = await openPage(api.url, { forcedColors: "active", reducedMotion: "reduce" });
  for (const { name, path } of pages) {
    await page.goto(`${api.url}${path}`);
    expect({ name, violations: await findViolations(page) }).toEqual({ name, violations: [] });
    expect(await page.evaluate(() => document.getAnimations().length)).toBe(0);
  }
});

test("a page without script shows the amount, code, link and state, and a link to check again", async () => {
  const { page } = await openPage(api.url, { javaScriptEnabled: false });
  const waiting = pathOf("requires_action");
  await page.goto(`${api.url}${waiting}`);
  for (const text of ["Pay $12.50 to Shop", "Nothing has been charged yet."])
    expect(await page.getByText(text).first().isVisible()).toBe(true);
  expect(await page.locator(".qr").isVisible()).toBe(true);
  expect(await page.getByRole("textbox", { name: "Payment link" }).inputValue()).toBe(`${api.url}${waiting}`);
  expect(await page.getByText("Copy", { exact: true }).isVisible()).toBe(false);
  expect(await page.locator("noscript p:visible").textContent()).toContain("This page does not update by itself");
  // The page does not reload until the buyer requests it.
  expect(await page.locator("meta[http-equiv=refresh]").count()).toBe(0);
  await page.getByRole("link", { name: "Check every 10 seconds" }).click();
  expect(await page.locator("meta[http-equiv=refresh]").getAttribute("content")).toBe("10");
  await page.getByRole("link", { name: "Stop checking every 10 seconds" }).click();
  expect(await page.locator("meta[http-equiv=refresh]").count()).toBe(0);
  await page.goto(`${api.url}${pathOf("processing")}`);
  expect(await page.getByText("Test console", { exact: true }).isVisible()).toBe(false);
  expect(await page.locator("h1:visible").textContent()).toBe("Your payment is on its way");
});

test("a phone shows plain links that open the page in wallets' browsers, and a desktop does not", async () => {
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
