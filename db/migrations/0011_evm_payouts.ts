import { type Kysely, sql } from "kysely";

/** Payouts that a restored database has forgotten are found by their numbers. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // Movements under a number that belong to no transfer: few, and read before every payout.
  `create index sighting_unclaimed on sighting (chain, payer)
    where transfer_id is null and authorization_nonce is not null and not orphaned`,
];
