import { randomUUID } from "node:crypto";

export type IdPrefix =
  | "acct"
  | "key"
  | "mrch"
  | "crypto"
  | "dchg"
  | "pay"
  | "opt"
  | "att"
  | "trf"
  | "stl"
  | "rfnd"
  | "cpol"
  | "cdat"
  | "whe"
  | "oreq";

/**
 * Returns a new identifier: a prefix, and 128 bits in hex. The first 32 bits are `at` in Unix seconds, so that new rows
 * are near each other in every index (docs/decisions/ids.md). The other 96 are random: a payment's id is the permission
 * to view and pay it.
 */
export function newId(prefix: IdPrefix, at: Date): string {
  const second = Math.floor(at.getTime() / 1_000);
  if (second < 0 || second > 0xff_ff_ff_ff) throw new RangeError(`an id cannot say the second ${second}`);
  // Node takes UUIDs from random bytes in store: 20 options take twenty ids. The digits left out say the UUID's version.
  const uuid = randomUUID();
  return `${prefix}_${second.toString(16).padStart(8, "0")}${uuid.slice(0, 8)}${uuid.slice(9, 13)}${uuid.slice(24)}`;
}
