import { randomBytes } from "node:crypto";

export type IdPrefix =
  | "acct"
  | "key"
  | "mrch"
  | "crypto"
  | "pay"
  | "opt"
  | "att"
  | "trf"
  | "stl"
  | "rfnd"
  | "corr"
  | "cpol"
  | "cdat"
  | "whe";

/** A new identifier: 128 random bits behind a prefix, so that knowing one tells nothing of another. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${randomBytes(16).toString("hex")}`;
}
