import jsqr from "jsqr";
import type { Page } from "playwright-core";

/** What a camera reads from a picture of the page's code; the browser itself unpacks the PNG. */
export async function scan(page: Page): Promise<string | undefined> {
  const picture = (await page.locator(".qr").screenshot()).toString("base64");
  const reader = await page.context().newPage();
  const { pixels, width, height } = await reader.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    const { width, height } = Object.assign(canvas, { width: image.width, height: image.height });
    const context = canvas.getContext("2d") as CanvasRenderingContext2D;
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, width, height);
    // A million numbers take their time on the way to us; as text they do not.
    const rows = Array.from({ length: height }, (_, row) => data.subarray(row * width * 4, (row + 1) * width * 4));
    const pixels = btoa(rows.map((row) => String.fromCharCode(...row)).join(""));
    return { pixels, width, height };
  }, picture);
  await reader.close();
  const read = jsqr as unknown as typeof jsqr.default;
  return read(Uint8ClampedArray.from(Buffer.from(pixels, "base64")), width, height)?.data;
}
