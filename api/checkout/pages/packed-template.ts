import { constants, crc32, deflateRawSync } from "node:zlib";

/** A text with slots, which are numbers. */
export type TemplateParts = readonly (string | number)[];

/**
 * Returns the page with these values in its slots and this end, compressed (gzip, RFC 1952). Each value has the number of bytes
 * that the template was made for; the end has any number up to 65,535.
 */
export type PackedTemplate = (values: readonly Buffer[], end: Buffer) => Buffer;

/** A member without a name and a time, compressed by deflate, from an unknown system. */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff]);
/** An empty block of deflate that is the last one. */
const LAST_BLOCK = Buffer.from([0x03, 0x00]);
/** The checksum of the page, and its length. */
const TRAILER_BYTES = 8;
/** Bytes of the length that begins a stored block, and of its complement. */
const LENGTHS_BYTES = 4;
/** The length of a stored block has two bytes. */
const MOST_STORED = 0xff_ff;
/** Takes the place of values while the text around them is compressed. This byte never occurs in UTF-8. */
const FILLING = 0xff;

type Slot = { slot: number; at: number };

/**
 * Compresses a page once for all values of its slots. A value is stored without compression, at each of its places (RFC 1951,
 * section 3.2.4). The text between is compressed with references to the text before it, which are distances: they stay valid
 * because the length of a slot is constant. No reference reaches into a slot. While the text is compressed, slots contain a
 * byte that no text contains, and a reference is made only to bytes that equal the text. So no byte of a value occurs anywhere but
 * in its slots.
 * @param parts the page without its end
 * @param lengths of the values in UTF-8, bytes, by slot; at most 65,535
 */
export function packTemplate(parts: TemplateParts, lengths: readonly number[]): PackedTemplate {
  const fillings = lengths.map((length) => Buffer.alloc(length, FILLING));
  const plain = Buffer.concat(
    parts.map((part) => (typeof part === "number" ? take(fillings, part) : Buffer.from(part))),
  );
  const slots = listSlots(parts, lengths);
  const chunks: Buffer[] = [HEADER];
  const packedSlots: Slot[] = [];
  let size = HEADER.length;
  const add = (bytes: Buffer) => {
    chunks.push(bytes);
    size += bytes.length;
  };
  let from = 0;
  for (const { slot, at } of slots) {
    const value = take(fillings, slot);
    const text = compress(plain, from, at);
    writeLengths(text, text.length - LENGTHS_BYTES, value.length);
    add(text);
    packedSlots.push({ slot, at: size });
    add(value);
    from = at + value.length;
  }
  add(compress(plain, from, plain.length));
  return fillWith({ plain, slots, packed: Buffer.concat(chunks), packedSlots, lengths });
}

/** A page and its compressed form, each with the places of its slots. */
type Packed = {
  plain: Buffer;
  slots: readonly Slot[];
  packed: Buffer;
  packedSlots: readonly Slot[];
  lengths: readonly number[];
};

function fillWith({ plain, slots, packed, packedSlots, lengths }: Packed): PackedTemplate {
  return (values, end) => {
    if (lengths.some((length, slot) => take(values, slot).length !== length))
      throw new Error("a value has another length");
    for (const { slot, at } of slots) take(values, slot).copy(plain, at);
    const out = Buffer.allocUnsafe(packed.length + end.length + LAST_BLOCK.length + TRAILER_BYTES);
    packed.copy(out);
    for (const { slot, at } of packedSlots) take(values, slot).copy(out, at);
    let at = writeLengths(out, packed.length - LENGTHS_BYTES, end.length);
    at += end.copy(out, at);
    at += LAST_BLOCK.copy(out, at);
    at = out.writeUInt32LE(crc32(end, crc32(plain)), at);
    out.writeUInt32LE(plain.length + end.length, at);
    return out;
  };
}

/** Returns where the slots occur in the page, in its order. */
function listSlots(parts: TemplateParts, lengths: readonly number[]): Slot[] {
  const slots: Slot[] = [];
  let at = 0;
  for (const part of parts) {
    if (typeof part === "number") slots.push({ slot: part, at });
    at += typeof part === "number" ? take(lengths, part) : Buffer.byteLength(part);
  }
  return slots;
}

/** Compresses a text of the page. Ends with an empty stored block, whose lengths are the last four bytes. */
function compress(plain: Buffer, from: number, to: number): Buffer {
  const before = from === 0 ? {} : { dictionary: plain.subarray(0, from) };
  return deflateRawSync(plain.subarray(from, to), { level: 9, finishFlush: constants.Z_SYNC_FLUSH, ...before });
}

/** Writes the length of a stored block and its complement. Returns where the content begins. */
function writeLengths(into: Buffer, at: number, length: number): number {
  if (length > MOST_STORED) throw new Error(`a stored block of ${length} bytes is too long`);
  return into.writeUInt16LE(length ^ MOST_STORED, into.writeUInt16LE(length, at));
}

function take<T>(list: readonly T[], index: number): T {
  const found = list[index];
  if (found === undefined) throw new Error(`a page has no slot ${index}`);
  return found;
}
