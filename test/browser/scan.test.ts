import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { languages } from "../../api/checkout/languages.ts";
import { openPage } from "./browser.ts";
import { scan } from "./scan.ts";
import { openShop } from "./shop.ts";

const { api, pay, linkOf } = await openShop();
const id = await pay();

const looks = [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["forced colours", { forcedColors: "active", colorScheme: "dark" }],
  ["320 pixels", { viewport: { width: 320, height: 640 } }],
] as const;

test.each(looks.flatMap(([name, look]) => [1, 2].map((deviceScaleFactor) => ({ name, look, deviceScaleFactor }))))(
  "the code reads as the payment link: $name, $deviceScaleFactor pixels per pixel",
  async ({ look, deviceScaleFactor }) => {
    const { page } = await openPage(api.url, { ...look, deviceScaleFactor });
    await page.goto(linkOf(id));
    expect(await scan(page)).toBe(linkOf(id));
    expect(await page.getByRole("img", { name: "QR code of the payment link" }).isVisible()).toBe(true);
  },
);

test("above the code stands what to do with it, and below it the same link as text, to be copied, in every language", async () => {
  const { page } = await openPage(api.url);
  for (const { tag, texts } of languages) {
    await page.goto(linkOf(id, `&lang=${tag}`));
    const top = async (one: Locator): Promise<number> => (await one.boundingBox())?.y ?? Number.NaN;
    const code = page.getByRole("img", { name: texts.qrName, exact: true });
    const link = page.getByRole("textbox", { name: texts.linkLabel, exact: true });
    const copy = page.getByRole("button", { name: texts.copy, exact: true });
    expect({ tag, counts: [await code.count(), await link.count(), await copy.count()] }).toEqual({
      tag,
      counts: [1, 1, 1],
    });
    expect(await top(page.getByText(texts.scan))).toBeLessThan(await top(code));
    expect(await top(code)).toBeLessThan(await top(link));
    expect(await link.inputValue()).toBe(linkOf(id));
    expect(await link.getAttribute("readonly")).toBe("");
    // What is left is told in words too, and not by a colour or a bar alone.
    expect(await page.getByText(texts.timeLeft).locator("[role=timer]").textContent()).toMatch(/^\d+:\d\d$/);
  }
});
