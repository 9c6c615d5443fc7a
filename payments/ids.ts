import { randomBytes } from "node:crypto";

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
  const bytes = randomBytes(16);
  bytes.writeUInt32BE(Math.floor(at.getTime() / 1000));
  return `${prefix}_${bytes.toString("hex")}`;
}
