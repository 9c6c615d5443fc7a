import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { languages } from "../../api/checkout/languages.ts";
import { findViolations } from "./axe.ts";
import { none, openPage } from "./browser.ts";
import { openShop } from "./shop.ts";
import { makePages } from "./states.ts";

const shop = await openShop();
const { api } = shop;
const pages = await makePages(shop);
/** Elements that stick out to the side, and buttons and links that are too small to be hit. */
function findMisfits(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const misfits: string[] = [];
    const over = document.documentElement.scrollWidth - innerWidth;
    if (over > 0) misfits.push(`${over} px too wide`);
    for (const one of document.querySelectorAll<HTMLElement>("button, .button, input, select, summary, footer a")) {
      const { width, height } = one.getBoundingClientRect();
      const isChecked = one instanceof HTMLInputElement && ["checkbox", "radio"].includes(one.type);
      if (width > 0 && (height < (isChecked ? 24 : 44) || width < 24))
        misfits.push(`${one.tagName} ${one.id} ${one.className}: ${width} x ${height}`);
    }
    return misfits;
  });
}

const looks = [
  {
    name: "light, English, 320 px",
    lang: "en",
    options: { colorScheme: "light", viewport: { width: 320, height: 640 } },
  },
  {
    name: "dark, English, 1280 px",
    lang: "en",
    options: { colorScheme: "dark", viewport: { width: 1280, height: 800 } },
  },
  { name: "dark, Arabic, 320 px", lang: "ar", options: { colorScheme: "dark", viewport: { width: 320, height: 640 } } },
  {
    name: "light, Arabic, 1280 px",
    lang: "ar",
    options: { colorScheme: "light", viewport: { width: 1280, height: 800 } },
  },
] as const;

describe.each(looks)("$name", ({ lang, options }) => {
  test("no page has anything that axe finds wrong, sticks out, is too small, or is told to the console", async () => {
    const { page, misdeeds } = await openPage(api.url, options);
    for (const { name, path } of pages) {
      await page.goto(`${api.url}${path}&lang=${lang}`);
      for (const closed of await page.locator("details").all())
        await closed.evaluate((one) => one.setAttribute("open", ""));
      expect({ name, violations: await findViolations(page), misfits: await findMisfits(page) }).toEqual({
        name,
        violations: [],
        misfits: [],
      });
    }
    expect(misdeeds).toEqual(none);
  });
});

test.each(languages.map(({ tag }) => tag))(
  "%s fits 320 px, also with text of twice the size and wide spacing",
  async (tag) => {
    const { page } = await openPage(api.url, { viewport: { width: 320, height: 640 } });
    for (const { name, path } of pages) {
      await page.goto(`${api.url}${path}&lang=${tag}`);
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
  const [waiting, processing] = pages;
  await page.goto(`${api.url}${waiting?.path}`);
  for (const said of ["Pay $5.00 to Shop", "Nothing has been charged yet."])
    expect(await page.getByText(said).first().isVisible()).toBe(true);
  expect(await page.locator(".qr").isVisible()).toBe(true);
  expect(await page.getByRole("textbox", { name: "Payment link" }).inputValue()).toBe(`${api.url}${waiting?.path}`);
  for (const name of ["Copy", "Test console"])
    expect(await page.getByText(name, { exact: true }).isVisible()).toBe(false);
  expect(await page.locator("noscript p:visible").textContent()).toContain("This page does not update by itself");
  // Nothing reloads by itself until the buyer asks for it.
  expect(await page.locator("meta[http-equiv=refresh]").count()).toBe(0);
  await page.getByRole("link", { name: "Check every 10 seconds" }).click();
  expect(await page.locator("meta[http-equiv=refresh]").getAttribute("content")).toBe("10");
  await page.getByRole("link", { name: "Stop checking every 10 seconds" }).click();
  expect(await page.locator("meta[http-equiv=refresh]").count()).toBe(0);
  await page.goto(`${api.url}${processing?.path}`);
  expect(await page.locator("h1:visible").textContent()).toBe("Your payment is on its way");
});

test("a phone is offered wallets' own browsers by plain links, to the wallet's host; a desktop is not", async () => {
  const [, , , , , , live] = pages;
  const link = `${api.url}${live?.path}`;
  const phone = await openPage(api.url, { hasTouch: true, isMobile: true, javaScriptEnabled: false });
  await phone.page.goto(link);
  const open = phone.page.getByRole("link", { name: "Open in MetaMask" });
  expect(await open.isVisible()).toBe(true);
  expect(await open.getAttribute("href")).toBe(`https://link.metamask.io/dapp/${link.slice("http://".length)}`);
  const desktop = await openPage(api.url);
  await desktop.page.goto(link);
  expect(await desktop.page.getByRole("link", { name: "Open in MetaMask" }).isVisible()).toBe(false);
});
