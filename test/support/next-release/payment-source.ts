import { type Kysely, sql } from "kysely";

// A migration of the next release: it expands the schema.

/** The indexes on tables of this release. */
export const concurrentIndexes = { payment_source: "on payment (source, id) where source is not null" };

export const documented = {
  payment_source_present: "The former release does not write the source, which has a default.",
};

/**
 * Adds a column to payments, and a table with the origin of each attempt. The former release writes neither: its payments get
 * the default, and it deletes attempts without knowing their origins.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table payment add column source text default 'former release'`.execute(db);
  await sql`alter table payment
    add constraint payment_source_present check (source is not null) not valid`.execute(db);
  await sql`create table attempt_origin (
    attempt_id text primary key references attempt on delete cascade,
    confirmed_by text not null
  )`.execute(db);
}
