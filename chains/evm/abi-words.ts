import type { Hex } from "viem";

/** Functions that pack call data by hand, for calls that every payment makes. Words are hex without 0x. */

/** Returns an address as one word. */
export const packAddress = (address: Hex): string => address.slice(2).toLowerCase().padStart(64, "0");

/** Returns a number that is not negative as one word. */
export const packNumber = (number: bigint | number): string => number.toString(16).padStart(64, "0");

/** Returns bytes with their length before them, padded to whole words. */
export function packBytes(bytes: Hex): string {
  const hex = bytes.slice(2);
  return packNumber(hex.length / 2) + hex.padEnd(Math.ceil(hex.length / 64) * 64, "0");
}
