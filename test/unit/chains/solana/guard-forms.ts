/** Encoders of Lighthouse's assertions. The layouts are those of its source, written independently of our parser. */

const u8 = (value: number) => [value];
const u64 = (value: bigint) => [...Buffer.from(BigUint64Array.of(value).buffer)];
const i128 = (value: bigint) => [...u64(BigInt.asUintN(64, value)), ...u64(BigInt.asUintN(64, value >> 64n))];

export const EQUAL = 0;
const AT_LEAST = 4;
const hash = new Array<number>(32).fill(7);

export const lamports = (value: bigint, operator = AT_LEAST) => [0, ...u64(value), operator];
export const dataLength = (value: bigint) => [1, ...u64(value), EQUAL];
export const owner = (bytes: Uint8Array) => [2, ...bytes, EQUAL];
/** 0 is the System program, 1 is the Token program. */
export const knownOwner = (program: number) => [3, program, EQUAL];
/** The hash of bytes 0 to 164. 165 in LEB128 takes two bytes. */
export const dataHash = (bytes: Uint8Array | number[] = hash) => [8, ...bytes, 0, 0xa5, 0x01];

export const mintedBy = (bytes: Uint8Array) => [0, ...bytes, EQUAL];
export const ownedBy = (bytes: Uint8Array) => [1, ...bytes, EQUAL];
export const amount = (value: bigint, operator = AT_LEAST) => [2, ...u64(value), operator];
export const noDelegate = [3, 0, EQUAL];
export const initialized = [4, 1, EQUAL];
export const notNative = [5, 0, EQUAL];
export const delegatedAmount = (value: bigint) => [6, ...u64(value), EQUAL];
export const noCloseAuthority = [7, 0, EQUAL];
export const isAssociated = [8];

const SILENT = 0;

export const assertData = (offset: number, value: number[]) => [2, SILENT, offset, ...value];
export const u64At = (offset: number, value: bigint) => [offset, 7, ...u64(value), EQUAL];
export const assertDataMulti = (...entries: number[][]) => [3, SILENT, entries.length, ...entries.flat()];
/** Compares u64 values at two offsets. */
export const assertDelta = (a: number, b: number, difference: bigint) => [
  ...[4, SILENT, 1, a, b, 6],
  ...i128(difference),
  EQUAL,
];
export const assertInfo = (one: number[], level = SILENT) => [5, level, ...one];
export const assertInfoMulti = (...entries: number[][]) => [6, SILENT, entries.length, ...entries.flat()];
export const assertMint = (decimals: number) => [7, SILENT, 2, ...u8(decimals), EQUAL];
export const assertMintMulti = (...decimals: number[]) => [
  ...[8, SILENT, decimals.length],
  ...decimals.flatMap((one) => [2, one, EQUAL]),
];
export const assertToken = (one: number[]) => [9, SILENT, ...one];
export const assertTokenMulti = (...entries: number[][]) => [10, SILENT, entries.length, ...entries.flat()];
/** That the slot is at most a number. */
export const assertClock = (slot: bigint) => [15, SILENT, 0, ...u64(slot), 5];
