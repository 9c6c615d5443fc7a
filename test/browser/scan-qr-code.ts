import jsqr from "jsqr";
import type { Page } from "playwright-core";

/** Returns the text of the page's QR code, read from a screenshot; the browser itself decodes the PNG. */
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
    // A million numbers are slow to transfer over the debugger; one string is fast.
    const rows = Array.from({ length: height }, (_, row) => data.subarray(row * width * 4, (row + 1) * width * 4));
    const pixels = btoa(rows.map((row) => String.fromCharCode(...row)).join(""));
    return { pixels, width, height };
  }, picture);
  await reader.close();
  const read = jsqr as unknown as typeof jsqr.default;
  return read(Uint8ClampedArray.from(Buffer.from(pixels, "base64")), width, height)?.data;
}
