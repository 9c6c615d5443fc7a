import { expect, test } from "vitest";
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
