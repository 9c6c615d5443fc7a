/** The parts of a message, in the order of its bytes. Keys have 32 bytes. */
export type WireMessage = {
  signers: number;
  readonlySigners: number;
  readonlyOthers: number;
  keys: Uint8Array[];
  blockhash: Uint8Array;
  /** `program` and `accounts` are indexes into the keys, followed by the accounts of lookup tables. */
  instructions: { program: number; accounts: number[]; data: Uint8Array }[];
  lookupTables: number;
  /** Accounts that the lookup tables add. */
  lookedUp: number;
};

const KEY_BYTES = 32;
/** The highest bit of the first byte marks a version; the other bits are its number. */
const VERSIONED = 0x80;

/**
 * Reads a message, legacy or version 0, from exactly these bytes. Returns undefined for anything else, also for a length that
 * is not in its shortest form, so each message has one encoding. web3.js reads the same messages (a test compares them) and
 * takes ten times as long.
 */
export function readWireMessage(bytes: Uint8Array): WireMessage | undefined {
  try {
    return readWhole(bytes);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function readWhole(bytes: Uint8Array): WireMessage {
  const { take, takeByte, takeLength, takeMany, hasMore } = openReader(bytes);
  const first = takeByte();
  if (first > VERSIONED) throw new RangeError("the version is not known");
  const message = {
    signers: first === VERSIONED ? takeByte() : first,
    readonlySigners: takeByte(),
    readonlyOthers: takeByte(),
    keys: takeMany(() => take(KEY_BYTES)),
    blockhash: take(KEY_BYTES),
    instructions: takeMany(() => ({
      program: takeByte(),
      accounts: Array.from(take(takeLength())),
      data: new Uint8Array(take(takeLength())),
    })),
  };
  const lookups = first === VERSIONED ? takeMany(() => [take(KEY_BYTES), take(takeLength()), take(takeLength())]) : [];
  if (hasMore()) throw new RangeError("there are more bytes");
  const lookedUp = lookups.reduce(
    (sum, [, writable, readonly]) => sum + (writable?.length ?? 0) + (readonly?.length ?? 0),
    0,
  );
  return { ...message, lookupTables: lookups.length, lookedUp };
}

/** Returns functions that take the next bytes. They throw RangeError at the end. */
function openReader(bytes: Uint8Array) {
  let at = 0;
  const take = (count: number): Uint8Array => {
    if (at + count > bytes.length) throw new RangeError("there are not enough bytes");
    at += count;
    return bytes.subarray(at - count, at);
  };
  const takeByte = (): number => {
    const byte = bytes[at];
    if (byte === undefined) throw new RangeError("there are not enough bytes");
    at += 1;
    return byte;
  };
  /** A compact-u16. A transaction has at most 1232 bytes, so a length of three bytes exceeds it. */
  const takeLength = (): number => {
    const low = takeByte();
    if (low < 0x80) return low;
    const high = takeByte();
    if (high === 0 || high >= 0x80) throw new RangeError("the length is too long, or not in its shortest form");
    return (high << 7) | (low & 0x7f);
  };
  const takeMany = <T>(takeOne: () => T): T[] => {
    const all: T[] = [];
    for (let left = takeLength(); left > 0; left -= 1) all.push(takeOne());
    return all;
  };
  return { take, takeByte, takeLength, takeMany, hasMore: () => at < bytes.length };
}
