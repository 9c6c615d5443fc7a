import fc from "fast-check";
import { expect, test } from "vitest";
import { cleanText, escapeJson, isStorable } from "../../../runtime/clean-text.ts";

/** Generates any UTF-16 text; characters that break parsers are frequent. */
const hostile = fc
  .array(fc.oneof(fc.constantFrom(0, 0x1b, 0x0a, 0x85, 0xd83d, 0xde00, 0x202e), fc.integer({ min: 0, max: 0xffff })))
  .map((units) => String.fromCharCode(...units));

test.each([
  ["a plain sentence", "a plain sentence"],
  ["\0", "\ufffd"],
  ["before\0after", "before\ufffdafter"],
  ["two\r\nlines\tand a column", "two  lines and a column"],
  ["\u001b[2J\u0085\u007f", "\ufffd[2J\ufffd\ufffd"],
  ["half a smile \ud83d", "half a smile \ufffd"],
  ["a whole smile 😀", "a whole smile 😀"],
  ["refund \u202eeert", "refund \ufffdeert"],
])("the text %j becomes %j", (text, clean) => {
  expect(cleanText(text, 100)).toBe(clean);
});

test("a text is truncated between code points, so that no character is split", () => {
  expect(cleanText("😀😀😀😀", 3)).toBe("😀😀…");
  expect(cleanText("😀😀😀", 3)).toBe("😀😀😀");
  expect(cleanText(`${"a".repeat(9)}😀`, 10)).toBe(`${"a".repeat(9)}😀`);
  expect(cleanText("a".repeat(10_000_000), 4)).toBe("aaa…");
});

test("a cleaned text can be stored, is one line, fits the limit and does not change when it is cleaned again", () => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 1, max: 50 }), (text, maxLength) => {
      const clean = cleanText(text, maxLength);
      expect(isStorable(clean)).toBe(true);
      expect(clean).not.toMatch(/[\p{Cc}\p{Cs}]/u);
      expect(Array.from(clean).length).toBeLessThanOrEqual(maxLength);
      expect(cleanText(clean, maxLength)).toBe(clean);
    }),
  );
});

test("cleaning never turns an unclean text into a valid identifier", () => {
  const name = `0x${"ab".repeat(32)}`;
  for (const text of [`${name}\0`, `\ud800${name}`, `${name}\n`, `${name}${"0".repeat(100)}`])
    expect(cleanText(text, 100)).not.toBe(name);
});

test("escaped JSON has the same values, and nothing in it that a terminal would act on", () => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 0, max: 2 }), (text, indent) => {
      const value = { [text]: [text] };
      const escaped = escapeJson(JSON.stringify(value, null, indent));
      expect(JSON.parse(escaped)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(escaped.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
    }),
  );
});
