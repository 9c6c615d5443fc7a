import { readFile } from "node:fs/promises";
import { type Kysely, sql } from "kysely";

/** The files of `initial/`, one per noun, in the order of their references. */
const files = [
  "accounts",
  "merchants",
  "events",
  "ledger",
  "settlements",
  "payments",
  "refunds",
  "payout-queue",
  "transfers",
  "chains",
  "solana",
  "webhooks",
  "operations",
];

/** Creates the whole schema. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const file of files) {
    const text = await readFile(new URL(`./initial/${file}.sql`, import.meta.url), "utf8");
    await sql.raw(text).execute(db);
  }
}
