import { type Kysely, sql } from "kysely";

/** Deadlines are compared with the time of the chains. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw("alter table chain_cursor add column chain_time timestamptz").execute(db);
}
