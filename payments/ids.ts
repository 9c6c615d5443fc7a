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
  | "corr"
  | "cpol"
  | "cdat"
  | "whe"
  | "oreq";

/** Returns a new identifier: a prefix and 128 random bits, so that ids cannot be guessed from one another. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${randomBytes(16).toString("hex")}`;
}
