import { encodeBase58 } from "../../chains/solana/base58.ts";
import { invalidParams } from "./validator-errors.ts";

type Instruction = { program: number; accounts: Uint8Array; data: Uint8Array };
type Lookup = { table: Uint8Array; writable: Uint8Array; readonly: Uint8Array };

/** A parsed transaction. Indexes count the static `keys` first, then the keys that lookups load. */
export type WireTransaction = {
  bytes: Uint8Array;
  /** The first signature in base58, which identifies the transaction. */
  signature: string;
  signatures: Uint8Array[];
  version: "legacy" | 0;
  header: { signers: number; readonlySigners: number; readonlyOthers: number };
  keys: Uint8Array[];
  blockhash: string;
  instructions: Instruction[];
  lookups: Lookup[];
};

/** Largest transaction that fits into a network packet. */
const packetBytes = 1232;

/**
 * Parses a transaction, legacy or version 0. litesvm aborts the process on invalid bytes, so this parser is strict: every count
 * must have its shortest form, every index must be within bounds, and no bytes may follow. It is also much faster than parsing
 * and serializing with web3.js.
 */
export function readTransaction(bytes: Uint8Array): WireTransaction {
  if (bytes.length > packetBytes)
    throw invalidParams(`transaction too large: ${bytes.length} bytes (max: ${packetBytes} bytes)`);
  const reader = new Reader(bytes);
  const signatures = reader.list(() => reader.take(64));
  const first = signatures[0];
  if (first === undefined) throw malformed("no signature");
  const message = readMessage(reader);
  if (signatures.length !== message.header.signers) throw malformed("signatures do not fit the header");
  return { bytes, signature: encodeBase58(first), signatures, ...message };
}

/** Returns a message as a transaction with empty signatures. */
export function wrapMessage(message: Uint8Array): WireTransaction {
  const { header } = readMessage(new Reader(message));
  if (header.signers > 12) throw malformed("too many signers");
  return readTransaction(Buffer.concat([Uint8Array.of(header.signers), new Uint8Array(64 * header.signers), message]));
}

type Message = Pick<WireTransaction, "version" | "header" | "keys" | "blockhash" | "instructions" | "lookups">;

function readMessage(reader: Reader): Message {
  const isVersioned = reader.peek() >= 0x80;
  if (isVersioned && reader.byte() !== 0x80) throw malformed("unknown version");
  const header = { signers: reader.byte(), readonlySigners: reader.byte(), readonlyOthers: reader.byte() };
  const keys = reader.list(() => reader.take(32));
  const blockhash = encodeBase58(reader.take(32));
  const instructions = reader.list(() => ({ program: reader.byte(), accounts: reader.run(), data: reader.run() }));
  const lookups = isVersioned
    ? reader.list(() => ({ table: reader.take(32), writable: reader.run(), readonly: reader.run() }))
    : [];
  reader.end();
  const message: Message = { version: isVersioned ? 0 : "legacy", header, keys, blockhash, instructions, lookups };
  checkIndexes(message);
  return message;
}

/** Performs the checks that a validator calls sanitizing. */
function checkIndexes({ header, keys, instructions, lookups }: Message): void {
  const { signers, readonlySigners, readonlyOthers } = header;
  if (readonlySigners >= signers || signers + readonlyOthers > keys.length) throw malformed("the header does not fit");
  const loaded = lookups.reduce((sum, { writable, readonly }) => sum + writable.length + readonly.length, 0);
  if (lookups.some(({ writable, readonly }) => writable.length + readonly.length === 0))
    throw malformed("empty lookup");
  const total = keys.length + loaded;
  if (total > 256) throw malformed("too many accounts");
  for (const { program, accounts } of instructions) {
    if (program === 0 || program >= keys.length) throw malformed("a program index points at nothing");
    if (accounts.some((index) => index >= total)) throw malformed("an account index points at nothing");
  }
}

/** Returns true for a static key that the transaction may write. */
export function isWritable({ header, keys }: WireTransaction, index: number): boolean {
  const { signers, readonlySigners, readonlyOthers } = header;
  return index < signers ? index < signers - readonlySigners : index < keys.length - readonlyOthers;
}

const malformed = (what: string) => invalidParams(`failed to deserialize solana_transaction: ${what}`);

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }
  peek(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw malformed("too short");
    return byte;
  }
  byte(): number {
    const byte = this.peek();
    this.#at += 1;
    return byte;
  }
  take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw malformed("too short");
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }
  /** Reads a compact-u16: seven bits per byte, lowest first. A packet has no room for counts of more than two bytes. */
  count(): number {
    const low = this.byte();
    if (low < 0x80) return low;
    const high = this.byte();
    if (high === 0 || high >= 0x80) throw malformed("a count is not in its shortest form");
    return (low & 0x7f) | (high << 7);
  }
  run(): Uint8Array {
    return this.take(this.count());
  }
  list<T>(read: () => T): T[] {
    const length = this.count();
    const items: T[] = [];
    for (let index = 0; index < length; index += 1) items.push(read());
    return items;
  }
  end(): void {
    if (this.#at !== this.#bytes.length) throw malformed("bytes are left over");
  }
}
