import jsqr from "jsqr";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openPage } from "./browser.ts";
import { openShop } from "./shop.ts";

const { api, pay, linkOf } = await openShop();
const id = await pay();

/** What a camera reads from a picture of the code; the browser itself unpacks the PNG. */
async function scan(page: Page): Promise<string | undefined> {
  const picture = (await page.locator(".qr").screenshot()).toString("base64");
  const reader = await page.context().newPage();
  const { pixels, width, height } = await reader.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d") as CanvasRenderingContext2D;
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    return { pixels: Array.from(data), width: image.width, height: image.height };
  }, picture);
  await reader.close();
  const read = jsqr as unknown as typeof jsqr.default;
  return read(Uint8ClampedArray.from(pixels), width, height)?.data;
}

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
