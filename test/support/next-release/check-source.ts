import { type Kysely, sql } from "kysely";

// The first of two migrations of the release after the next one. The next release has written a source with every payment.

/** Reads every payment while others are written, so that the following migration reads none under its lock. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table payment validate constraint payment_source_present`.execute(db);
}
