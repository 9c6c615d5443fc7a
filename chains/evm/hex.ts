import type { Hex } from "viem";

/** Returns hex in lower case. The text must begin with `0x`. */
export function lowerCaseHex(text: string): Hex {
  return `0x${text.slice(2).toLowerCase()}`;
}
