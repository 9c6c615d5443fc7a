import { sql } from "kysely";
import { isRowError } from "./row-errors.ts";
import type { Db } from "./tables.ts";

/**
 * Runs work in an open transaction, and takes back only that work when a row makes it fail: the transaction goes on.
 * Returns the row's error then; any other error is thrown, and ends the transaction.
 */
export async function inSavepoint<T>(
  db: Db,
  work: () => Promise<T>,
): Promise<{ ok: true; value: T } | { ok: false; error: unknown }> {
  await sql`savepoint part`.execute(db);
  try {
    const value = await work();
    await sql`release savepoint part`.execute(db);
    return { ok: true, value };
  } catch (error) {
    if (!isRowError(error)) throw error;
    await sql`rollback to savepoint part`.execute(db);
    await sql`release savepoint part`.execute(db);
    return { ok: false, error };
  }
}
