import fc from "fast-check";

/**
 * Any code point except half surrogates, as the unit of `fc.string`. fast-check's own unit for that, `binary`, first makes a
 * list of them all, which takes seconds of processor time.
 */
export const codePoint = fc
  .oneof(fc.nat(0xff), fc.nat(0xd7ff), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));
