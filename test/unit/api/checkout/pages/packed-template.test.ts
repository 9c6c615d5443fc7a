import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { checkoutPage } from "../../../../../api/checkout/pages/checkout-page.ts";
import { packTemplate, type TemplateParts } from "../../../../../api/checkout/pages/packed-template.ts";
import { languages } from "../../../../../api/checkout/texts/languages.ts";
import { makePage } from "./checkout-page-example.ts";

/** Bytes of the longest value: so many values of one byte differ in two pages together (65,536). */
const pattern = (slot: number, length: number, digit: 0 | 1): Buffer =>
  Buffer.from(Array.from({ length }, (_, at) => ((slot * 1_000 + at) >> (8 * digit)) & 0xff));

const fill = (parts: TemplateParts, values: readonly Buffer[]): Buffer =>
  Buffer.concat(
    parts.map((part) => (typeof part === "number" ? (values[part] ?? Buffer.alloc(0)) : Buffer.from(part))),
  );

/**
 * Expects a template to be exact for all values. Each byte of the values has a number of its own, of which two pages contain one
 * byte each. So a byte in a wrong place would be seen in one of the two.
 */
function expectExact(parts: TemplateParts, lengths: readonly number[]) {
  const template = packTemplate(parts, lengths);
  for (const digit of [0, 1] as const) {
    const values = lengths.map((length, slot) => pattern(slot, length, digit));
    const end = Buffer.from(`end ${digit}`);
    expect(gunzipSync(template(values, end)).equals(Buffer.concat([fill(parts, values), end]))).toBe(true);
  }
}

test.each(languages.map((language) => [language.tag, language] as const))(
  "every byte of a value is in its slots and nowhere else, in pages in %s",
  (_tag, language) => {
    const page = makePage({ language });
    const { paymentId, shop } = page.view;
    const texts = [paymentId, shop];
    const parts = checkoutPage(page)
      .markup.split(new RegExp(`(${texts.map((text) => RegExp.escape(text)).join("|")})`))
      .map((part, index) => (index % 2 === 0 ? part : texts.indexOf(part)));
    expect(parts.filter((part) => typeof part === "number").length).toBeGreaterThan(20);
    expectExact(parts, [36, Buffer.byteLength(shop)]);
    expectExact(parts, [36, 1]);
    expectExact(parts, [500, 0]);
  },
);

test("slots at the ends, beside each other and of no bytes are filled", () => {
  expectExact([0, 1, "abcabcabcabc", 0, "abcabcabc", 2, 2], [5, 3, 0]);
  expectExact(["abcabcabc"], []);
  expectExact([], []);
});

test("a text of one repeated character is never taken from a slot before it", () => {
  for (let code = 0; code < 256; code += 1) expectExact([0, String.fromCodePoint(code).repeat(40)], [60]);
});

test("a value that equals the text around it is written as it is", () => {
  const parts = ["<a href='?pid=", 0, "&lang=de'>Deutsch</a><a href='?pid=", 0, "&lang=en'>English</a>"];
  const value = Buffer.from("&lang=de'>Deu");
  const template = packTemplate(parts, [value.length]);
  expect(gunzipSync(template([value], Buffer.alloc(0))).toString()).toBe(fill(parts, [value]).toString());
});

test("a value of another length is refused", () => {
  const template = packTemplate(["a", 0, "b"], [3]);
  for (const value of ["ab", "abcd"])
    expect(() => template([Buffer.from(value)], Buffer.alloc(0))).toThrow("another length");
});
