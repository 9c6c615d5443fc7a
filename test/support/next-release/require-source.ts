import { type Kysely, sql } from "kysely";

// The second migration of the release after the next one: it contracts the schema. test/support/next-release/build-release.ts
// replaces the name of the migration that it declares.

export const contracts = "payment-source";

/** Requires the source that the next release writes with every payment. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table payment alter column source set not null, alter column source drop default`.execute(db);
  // While it exists, SET NOT NULL reads no rows.
  await sql`alter table payment drop constraint payment_source_present`.execute(db);
}
