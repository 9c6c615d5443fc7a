import { crc32 } from "node:zlib";
import sharp from "sharp";
import { expect, test } from "vitest";
import { type ResizedImage, resizeImage } from "../../../../payments/merchants/resize-image.ts";
import { photo, plain } from "../../../support/sample-pictures.ts";

const RED = { r: 255, g: 0, b: 0, alpha: 1 };
const BLUE = { r: 0, g: 0, b: 255, alpha: 1 };

/** Shrinks a picture and decodes it as a browser does. Throws with the reason when the picture is rejected. */
async function shrink(bytes: Buffer) {
  const small = await resizeImage(bytes);
  if (typeof small === "string") throw new Error(small);
  const shown = await sharp(small.bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  const at = (x: number, y: number) => [...shown.data.subarray((y * shown.info.width + x) * 4).subarray(0, 4)];
  return { small, head: await sharp(small.bytes).metadata(), at };
}

test.each([
  ["PNG", () => photo(1_000).png()],
  ["JPEG", () => photo(1_000).jpeg()],
  ["progressive JPEG", () => photo(1_000).jpeg({ progressive: true })],
  ["JPEG for print", () => photo(1_000).toColourspace("cmyk").jpeg()],
  ["WebP", () => photo(1_000).webp()],
  ["AVIF", () => photo(1_000).avif({ effort: 0 })],
])("a photograph as %s becomes a WebP of 160 pixels and no more than 6 kB", async (_what, make) => {
  const { small, head } = await shrink(await make().toBuffer());
  expect(small).toMatchObject({ contentType: "image/webp", width: 160, height: 160 } satisfies Partial<ResizedImage>);
  expect(head).toMatchObject({ format: "webp", width: 160, height: 160 });
  expect(small.bytes.length).toBeLessThanOrEqual(6_000);
});

test("a picture of noise is compressed below the limit", async () => {
  const noise = Buffer.from(Array.from({ length: 160 * 160 * 3 }, (_, at) => (at * 7_919 * (at % 251)) % 256));
  const raw = { width: 160, height: 160, channels: 3 } as const;
  const blown = await sharp(noise, { raw }).resize(640, 640, { kernel: "nearest" }).png().toBuffer();
  expect((await shrink(blown)).small.bytes.length).toBeLessThanOrEqual(6_000);
});

test("a logo of few colours keeps its exact colours and its transparency", async () => {
  const hole = await plain(300, 300, { ...RED, alpha: 1 })
    .png()
    .toBuffer();
  const sign = plain(600, 600, { ...BLUE, alpha: 0 }).composite([{ input: hole, gravity: "southeast" }]);
  const { at } = await shrink(await sign.png().toBuffer());
  expect(at(10, 10)[3]).toBe(0);
  expect(at(150, 150)).toEqual([255, 0, 0, 255]);
});

test("a picture is rotated by its EXIF orientation and loses its EXIF data", async () => {
  const top = await plain(600, 300, RED).png().toBuffer();
  const held = plain(600, 600, BLUE).composite([{ input: top, gravity: "north" }]);
  const bytes = await held
    .jpeg({ quality: 100 })
    .withExif({ IFD0: { Artist: "Zoe" } })
    .withMetadata({ orientation: 6 })
    .toBuffer();
  expect(await sharp(bytes).metadata()).toMatchObject({ orientation: 6 });
  const { at, head, small } = await shrink(bytes);
  // The top of the picture is now on the right.
  expect(at(150, 80)[0]).toBeGreaterThan(200);
  expect(at(10, 80)[2]).toBeGreaterThan(200);
  expect(head).not.toHaveProperty("exif");
  expect(head).not.toHaveProperty("orientation");
  expect(small.bytes.toString("latin1")).not.toContain("Zoe");
});

test("an animated picture is reduced to its first frame", async () => {
  const frames = await Promise.all([RED, BLUE].map((colour) => plain(500, 500, colour).png().toBuffer()));
  const moving = await sharp(frames, { join: { animated: true } })
    .webp({ lossless: true })
    .toBuffer();
  expect((await sharp(moving).metadata()).pages).toBe(2);
  const { at, head } = await shrink(moving);
  expect(head.pages ?? 1).toBe(1);
  expect(at(80, 80)).toEqual([255, 0, 0, 255]);
});

test.each([
  ["5 % wider than high", 1_050, 1_000, { width: 160, height: 152 }],
  ["the smallest", 500, 500, { width: 160, height: 160 }],
  ["the largest", 4_096, 4_096, { width: 160, height: 160 }],
])("a picture at the limit is accepted: %s", async (_what, width, height, size) => {
  expect((await shrink(await plain(width, height).webp({ effort: 0 }).toBuffer())).head).toMatchObject(size);
});

test.each([
  ["too small", 499, 499, "is 499 x 499 pixels, expected at least 500 x 500"],
  ["too small on one side", 510, 499, "is 510 x 499 pixels, expected at least 500 x 500"],
  ["too large", 4_097, 4_097, "is 4097 x 4097 pixels, expected at most 4096 x 4096"],
  ["too wide", 1_060, 1_000, "is 1060 x 1000 pixels, expected a square (within 5 %)"],
  ["too high", 1_000, 1_060, "is 1000 x 1060 pixels, expected a square (within 5 %)"],
])("a picture is rejected when it is %s", async (_what, width, height, reason) => {
  expect(await resizeImage(await plain(width, height).webp({ effort: 0 }).toBuffer())).toBe(reason);
});

test.each([
  ["a GIF", () => plain(600, 600).gif().toBuffer()],
  ["a TIFF", () => plain(600, 600).tiff().toBuffer()],
  ["an SVG", () => Buffer.from('<svg width="600" height="600" xmlns="http://www.w3.org/2000/svg"/>')],
  ["a page", () => Buffer.from("<!doctype html>")],
  ["nothing", () => Buffer.alloc(0)],
])("a picture is refused when it is %s", async (_what, make) => {
  expect(await resizeImage(await make())).toBe("is not a complete JPEG, PNG, WebP or AVIF image");
});

test("a picture that declares an enormous size is rejected before it is decoded", async () => {
  const bytes = await plain(600, 600).png().toBuffer();
  for (const at of [16, 20]) bytes.writeUInt32BE(60_000, at);
  // The header's checksum covers the size, and an attacker's picture has a correct one.
  bytes.writeUInt32BE(crc32(bytes.subarray(12, 29)), 29);
  expect(await resizeImage(bytes)).toBe("is 60000 x 60000 pixels, expected at most 4096 x 4096");
});

test("a JPEG with sixty thousand scans is rejected", async () => {
  const whole = await plain(4_096, 4_096).flatten().jpeg({ progressive: true }).toBuffer();
  const scan = whole.subarray(whole.lastIndexOf(Buffer.from([0xff, 0xda])), -2);
  const layers = Array.from({ length: 60_000 }, () => scan);
  const began = performance.now();
  expect(await resizeImage(Buffer.concat([whole.subarray(0, -2), ...layers, whole.subarray(-2)]))).toContain("corrupt");
  expect(performance.now() - began).toBeLessThan(10_000);
});

test.each([
  ["PNG", () => photo(600).png()],
  ["JPEG", () => photo(600).jpeg()],
  ["WebP", () => photo(600).webp()],
  ["AVIF", () => photo(600).avif({ effort: 0 })],
])("a truncated %s is rejected with a reason", async (_what, make) => {
  const whole = await make().toBuffer();
  for (const part of [0.001, 0.01, 0.1, 0.5, 0.9, 0.999]) {
    const said = await resizeImage(whole.subarray(0, Math.floor(whole.length * part)));
    expect(said, `at ${part}`).toMatch(/^(is not a complete JPEG, PNG, WebP or AVIF image|the image is truncated)/);
  }
});

test("pictures that arrive together are resized one at a time, and an invalid one does not affect the others", async () => {
  const good = await plain(600, 600).png().toBuffer();
  const all = await Promise.all([good, good.subarray(0, 80), good].map(resizeImage));
  expect(all.map((one) => typeof one)).toEqual(["object", "string", "object"]);
});
