import type { Hex } from "viem";

/** Functions that pack call data and read results by hand, for calls that every payment makes. Words are hex without 0x. */

/** Returns an address as one word. */
export const packAddress = (address: Hex): string => address.slice(2).toLowerCase().padStart(64, "0");

/** Returns a number that is not negative as one word. */
export const packNumber = (number: bigint | number): string => number.toString(16).padStart(64, "0");

/** Returns bytes with their length before them, padded to whole words. */
export function packBytes(bytes: Hex): string {
  const hex = bytes.slice(2);
  return packNumber(hex.length / 2) + hex.padEnd(Math.ceil(hex.length / 64) * 64, "0");
}

/** Returns the number in the word that begins at a byte. Throws when the data ends before the end of the word. */
export function readNumber(data: Hex, at: number): number {
  const word = data.slice(2 + at * 2, 66 + at * 2);
  const number = word.length === 64 ? Number(`0x${word}`) : Number.NaN;
  if (Number.isNaN(number)) throw new RangeError(`there is no word at byte ${at} of the data`);
  return number;
}

/** Returns the bytes whose length is in the word that begins at a byte. Throws when the data ends before they do. */
export function readBytes(data: Hex, at: number): Hex {
  const from = 2 + (at + 32) * 2;
  const to = from + readNumber(data, at) * 2;
  if (to > data.length) throw new RangeError(`the bytes at byte ${at} are longer than the data`);
  return `0x${data.slice(from, to)}`;
}
