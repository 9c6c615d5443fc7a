import { type Kysely, sql } from "kysely";

/**
 * Indexes that a migration adds to tables which may be large, by their names; each value is what follows the name in
 * `create index`. They serve speed alone: a unique index guards rows, and belongs into the migration's transaction. Each
 * start builds what is missing of them, so a migration that drops one takes it out of this list.
 */
export type ConcurrentIndexes = Readonly<Record<string, string>>;

/**
 * Builds indexes without keeping anybody from writing, outside any transaction. One that is there stays; one that an
 * earlier run has left half built is dropped and built anew. Waits for transactions that are older, however long they take.
 */
export async function buildIndexes<T>(db: Kysely<T>, indexes: ConcurrentIndexes): Promise<void> {
  for (const [name, definition] of Object.entries(indexes)) {
    const isValid = await readValidity(db, name);
    if (isValid) continue;
    if (isValid === false) await sql`drop index concurrently ${sql.id(name)}`.execute(db);
    await sql`create index concurrently ${sql.id(name)} ${sql.raw(definition)}`.execute(db);
  }
}

/** Returns whether an index is whole; undefined where there is none of that name. */
async function readValidity<T>(db: Kysely<T>, name: string): Promise<boolean | undefined> {
  const { rows } = await sql<{ valid: boolean }>`
    select indisvalid as valid from pg_index where indexrelid = to_regclass(quote_ident(${name}))`.execute(db);
  return rows[0]?.valid;
}
