import { type Kysely, sql } from "kysely";

/** How a lane is led back from a nonce that an endpoint has made up. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements: string[] = [];

/** What has left the treasury without us, for the stock of an asset. */
export const concurrentIndexes = {
  ledger_entry_lost: "on ledger_entry (asset) where account = 'exceptions' and amount > 0",
};
