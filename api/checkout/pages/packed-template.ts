import { randomBytes } from "node:crypto";
import { constants, crc32, deflateRawSync, inflateRawSync } from "node:zlib";

/** A text with slots, which are numbers. */
type Parts = readonly (string | number)[];

/**
 * Returns the page with these values in its slots and this end, compressed (gzip). Each value must have the number of bytes that
 * the template was made for.
 */
export type PackedTemplate = (values: readonly Buffer[], end: Buffer) => Buffer;

/** A member of gzip without a name and a time, by deflate, from an unknown system. */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff]);
/** An empty block of deflate that is the last one. */
const LAST_BLOCK = Buffer.from([0x03, 0x00]);
/** The checksum of the page, and its length. */
const TRAILER_BYTES = 8;
/** Bytes of the lengths that begin the content of a stored block. */
const LENGTHS = 4;
/** A stored block has two bytes for its length. */
const MOST_STORED = 0xff_ff;
/** Bytes that never occur in UTF-8. With them in the slots, the compressor finds no text that equals the content of a slot. */
const FILLING = [0xc0, 0xc1, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff] as const;

/** How often a page is compressed to find the occurrences that have to be stored. */
const ATTEMPTS = 4;

/** One occurrence of a slot: where it begins in the page, bytes. */
type Place = { slot: number; at: number };
type Page = { plain: Buffer; places: readonly Place[]; lengths: readonly number[] };

/**
 * Compresses a page once for all values of its slots. The first occurrence of each slot is stored without compression, at a known
 * place. The text between is compressed as one stream, whose references are distances: the length of a slot is constant, so
 * they stay valid. Further occurrences are references to the first one. To fill the slots takes a tenth of the time of a
 * compression, and the result is as small.
 *
 * Returns undefined for a page that cannot be compressed so.
 * @param lengths of the values in UTF-8, bytes, by slot
 */
export function packTemplate(parts: Parts, lengths: readonly number[]): PackedTemplate | undefined {
  if (lengths.some((length) => length > MOST_STORED)) return undefined;
  const fillings = lengths.map((length) => Buffer.from(randomBytes(length).map((byte) => FILLING[byte % 13] ?? 0xff)));
  const page: Page = { plain: fillParts(parts, fillings), places: listPlaces(parts, lengths), lengths };
  const values = lengths.map((length) => randomBytes(length));
  const expected = fillParts(parts, values);
  let stored = page.places.filter(({ slot, at }) => at === page.places.find((one) => one.slot === slot)?.at);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const template = pack(page, stored);
    const made = inflateRawSync(template(values, Buffer.alloc(0)).subarray(HEADER.length, -TRAILER_BYTES));
    if (made.equals(expected)) return template;
    // A reference has 258 bytes at most. The last bytes of an occurrence may remain, and are written as they are.
    stored = page.places.filter((place) => stored.includes(place) || !isEqualAt(place, { made, expected, lengths }));
  }
  return undefined;
}

const fillParts = (parts: Parts, values: readonly Buffer[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === "number" ? take(values, part) : Buffer.from(part))));

/** Returns where the slots occur in the page, in its order. */
function listPlaces(parts: Parts, lengths: readonly number[]): Place[] {
  const places: Place[] = [];
  let at = 0;
  for (const part of parts) {
    if (typeof part === "number") places.push({ slot: part, at });
    at += typeof part === "number" ? take(lengths, part) : Buffer.byteLength(part);
  }
  return places;
}

type Made = { made: Buffer; expected: Buffer; lengths: readonly number[] };

function isEqualAt({ slot, at }: Place, { made, expected, lengths }: Made): boolean {
  const end = at + take(lengths, slot);
  return made.subarray(at, end).equals(expected.subarray(at, end));
}

/** Compresses the page with these occurrences stored. */
function pack({ plain, places, lengths }: Page, stored: readonly Place[]): PackedTemplate {
  const chunks: Buffer[] = [HEADER];
  const packedAt: Place[] = [];
  let size = HEADER.length;
  const add = (bytes: Buffer) => {
    chunks.push(bytes);
    size += bytes.length;
  };
  let from = 0;
  for (const { slot, at } of stored) {
    const length = take(lengths, slot);
    const text = compress(plain, from, at);
    writeLengths(text, text.length - LENGTHS, length);
    add(text);
    packedAt.push({ slot, at: size });
    add(Buffer.alloc(length));
    from = at + length;
  }
  add(compress(plain, from, plain.length));
  const packed = Buffer.concat(chunks);
  // For the checksum. The compressor needs the page as it is.
  const filled = Buffer.from(plain);
  return (values, end) => {
    for (const [slot, value] of values.entries())
      if (value.length !== lengths[slot]) throw new Error(`the value of slot ${slot} has another length`);
    const out = Buffer.allocUnsafe(packed.length + end.length + LAST_BLOCK.length + TRAILER_BYTES);
    packed.copy(out);
    for (const { slot, at } of packedAt) take(values, slot).copy(out, at);
    for (const { slot, at } of places) take(values, slot).copy(filled, at);
    let at = writeLengths(out, packed.length - LENGTHS, end.length);
    at += end.copy(out, at);
    at += LAST_BLOCK.copy(out, at);
    at = out.writeUInt32LE(crc32(end, crc32(filled)), at);
    out.writeUInt32LE(filled.length + end.length, at);
    return out;
  };
}

/** Compresses a part of the page, with references to what comes before it. Ends with an empty stored block, which ends on a byte. */
function compress(plain: Buffer, from: number, to: number): Buffer {
  const before = from === 0 ? {} : { dictionary: plain.subarray(0, from) };
  const flush = { finishFlush: constants.Z_SYNC_FLUSH };
  return deflateRawSync(plain.subarray(from, to), { level: 9, ...flush, ...before });
}

/** Writes the length of a stored block, and its complement. Returns where the content begins. */
function writeLengths(into: Buffer, at: number, length: number): number {
  return into.writeUInt16LE(length ^ MOST_STORED, into.writeUInt16LE(length, at));
}

function take<T>(list: readonly T[], index: number): T {
  const found = list[index];
  if (found === undefined) throw new Error(`a page has no slot ${index}`);
  return found;
}
