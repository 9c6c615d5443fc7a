import { type Kysely, sql } from "kysely";

/**
 * Indexes that a migration adds to tables that may be large, by name. The value is the text that follows the name in
 * `create index`. Such an index only serves speed; a unique index protects rows and belongs in the migration's
 * transaction. Every start builds the missing ones, so a migration that drops an index removes it from this list.
 */
export type ConcurrentIndexes = Readonly<Record<string, string>>;

/**
 * Builds indexes outside any transaction and without blocking writes. Keeps a valid index; drops and rebuilds one that an
 * interrupted run left invalid. Waits for every older transaction, however long it takes.
 */
export async function buildIndexes<T>(db: Kysely<T>, indexes: ConcurrentIndexes): Promise<void> {
  for (const [name, definition] of Object.entries(indexes)) {
    const isValid = await readValidity(db, name);
    if (isValid) continue;
    if (isValid === false) await sql`drop index concurrently ${sql.id(name)}`.execute(db);
    await sql`create index concurrently ${sql.id(name)} ${sql.raw(definition)}`.execute(db);
  }
}

/** Returns whether an index is valid. Undefined when no index has that name. */
async function readValidity<T>(db: Kysely<T>, name: string): Promise<boolean | undefined> {
  const { rows } = await sql<{ valid: boolean }>`
    select indisvalid as valid from pg_index where indexrelid = to_regclass(quote_ident(${name}))`.execute(db);
  return rows[0]?.valid;
}
