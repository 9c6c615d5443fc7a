import { base58 } from "@scure/base";
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeBase58, encodeBase58 } from "../../../../chains/solana/base58.ts";

test("bytes are encoded and decoded as the library does it, with zeros in front and of any length", () => {
  const zeros = fc.integer({ min: 0, max: 9 }).map((count) => new Uint8Array(count));
  const cases = fc.tuple(zeros, fc.uint8Array({ maxLength: 70 })).map((parts) => Buffer.concat(parts));
  const check = (bytes: Uint8Array) => {
    const text = base58.encode(bytes);
    expect(encodeBase58(bytes)).toBe(text);
    expect(decodeBase58(text)).toEqual(Buffer.from(bytes));
  };
  fc.assert(fc.property(cases, check), { numRuns: 500 });
});

test("a part of a larger buffer is encoded alone", () => {
  const whole = Uint8Array.from({ length: 80 }, (_, index) => index);
  expect(encodeBase58(whole.subarray(7, 71))).toBe(base58.encode(whole.slice(7, 71)));
});

test.each(["0", "O1", "1I", "2l3", "11111111122222222_", "é", "𝟙", " 1", "+2"])("%s is no base58", (text) => {
  expect(decodeBase58(text)).toBeUndefined();
});
