import { type Kysely, sql } from "kysely";

/** Whose word a block is, so that another endpoint reads it again. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = ["alter table chain_block add column read_by text"];

/** What has left the treasury without us, for the stock of an asset. */
export const concurrentIndexes = {
  ledger_entry_lost: "on ledger_entry (asset) where account = 'exceptions' and amount > 0",
};
