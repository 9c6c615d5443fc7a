import { readFileSync } from "node:fs";

/** The files of this folder, one per noun, in the order of their references. */
const files = [
  "locks",
  "accounts",
  "merchants",
  "events",
  "destination-changes",
  "ledger",
  "settlements",
  "payments",
  "payment-sums",
  "refunds",
  "payout-queue",
  "transfers",
  "chains",
  "solana",
  "webhooks",
  "refund-events",
  "audit",
  "audited-changes",
  "operators",
  "retention",
  "storage",
  "revoked-grants",
];

/** The texts of the files. A build contains the result of this module, not the module (see scripts/build.ts). */
export const statements: readonly string[] = files.map((file) =>
  readFileSync(new URL(`./${file}.sql`, import.meta.url), "utf8"),
);
