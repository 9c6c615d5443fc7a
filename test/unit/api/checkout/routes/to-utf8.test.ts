import fc from "fast-check";
import { expect, test } from "vitest";
import { toUtf8 } from "../../../../../api/checkout/routes/to-utf8.ts";

test.each([
  ["nothing", ""],
  ["ASCII", "<p>a</p>"],
  ["Latin-1", "é"],
  ["three bytes and four", "⁨日本語⁩ – 😀"],
  ["a lone high surrogate", "a\ud83d b"],
  ["a lone low surrogate", "\ude00"],
  ["more characters than a page has", "日".repeat(70_000)],
])("a text with %s is encoded as Buffer.from encodes it", (_, text) => {
  expect(toUtf8(text).equals(Buffer.from(text))).toBe(true);
});

test("any text is encoded as Buffer.from encodes it", () => {
  const text = fc.string({ unit: "binary" });
  fc.assert(fc.property(text, (one) => toUtf8(one).equals(Buffer.from(one))));
});
