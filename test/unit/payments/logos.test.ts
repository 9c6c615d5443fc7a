import { expect, test } from "vitest";
import { readPicture } from "../../../payments/logos.ts";
import { avif, jpeg, png, webp } from "../../support/pictures.ts";

test.each([
  ["image/png", png(500, 500)],
  ["image/jpeg", jpeg(1024, 1024)],
  ["image/webp", webp(4096, 4096)],
  ["image/avif", avif(800, 800)],
])("%s is told by its content", (contentType, bytes) => {
  expect(readPicture(bytes)).toMatchObject({ contentType });
});

test.each([
  ["5 % wider than high", webp(1050, 1000)],
  ["the smallest", webp(500, 500)],
  ["the largest", webp(4096, 4096)],
])("a picture at the limit is taken: %s", (_what, bytes) => {
  expect(readPicture(bytes)).toBeTypeOf("object");
});

test.each([
  ["too small", webp(499, 499), "is 499 x 499 pixels, expected at least 500 x 500"],
  ["too small on one side", webp(510, 499), "is 510 x 499 pixels, expected at least 500 x 500"],
  ["too large", webp(4097, 4097), "is 4097 x 4097 pixels, expected at most 4096 x 4096"],
  ["too wide", webp(1060, 1000), "is 1060 x 1000 pixels, expected a square (within 5 %)"],
  ["too high", webp(1000, 1060), "is 1000 x 1060 pixels, expected a square (within 5 %)"],
  ["a GIF", Buffer.from("GIF89a\x00\x04\x00\x04", "latin1"), "is not a JPEG, PNG, WebP or AVIF picture"],
  [
    "an SVG",
    Buffer.from('<svg width="600" height="600" xmlns="http://www.w3.org/2000/svg"/>'),
    "is not a JPEG, PNG, WebP or AVIF picture",
  ],
  ["a page", Buffer.from("<!doctype html>"), "is not a JPEG, PNG, WebP or AVIF picture"],
  ["nothing", Buffer.alloc(0), "is not a JPEG, PNG, WebP or AVIF picture"],
  ["a PNG cut off", png(600, 600).subarray(0, 80), "the picture is cut off"],
  ["a JPEG cut off", jpeg(600, 600).subarray(0, -2), "the picture is cut off"],
  ["a WebP cut off", Buffer.concat([webp(600, 600).fill(99, 4, 5)]), "the picture is cut off"],
])("a picture is refused when it is %s", (_what, bytes, reason) => {
  expect(readPicture(bytes)).toBe(reason);
});

test("any bytes get an answer", () => {
  for (const whole of [png(600, 600), jpeg(600, 600), webp(600, 600), avif(600, 600)])
    for (let length = 0; length < Math.min(whole.length, 200); length += 1)
      expect(["string", "object"]).toContain(typeof readPicture(whole.subarray(0, length)));
});
