import { sql } from "kysely";
import { isRowError } from "./row-errors.ts";
import type { Db } from "./tables.ts";

/**
 * Works on rows in an open transaction, all of them at once. When a row makes that fail, what was done is taken back to
 * a savepoint and the rows are halved until the failing one is alone, which `fail` then gets with its error: the
 * transaction goes on. Returns what the work gave, in the order of the rows. Any other error is thrown, and ends the transaction.
 */
export async function workInSavepoints<R, T>(
  db: Db,
  rows: readonly R[],
  { work, fail }: { work: (rows: readonly R[]) => Promise<T>; fail: (row: R, error: unknown) => Promise<void> },
): Promise<T[]> {
  const [first] = rows;
  if (first === undefined) return [];
  await sql`savepoint part`.execute(db);
  try {
    const result = await work(rows);
    await sql`release savepoint part`.execute(db);
    return [result];
  } catch (error) {
    if (!isRowError(error)) throw error;
    await sql`rollback to savepoint part`.execute(db);
    await sql`release savepoint part`.execute(db);
    if (rows.length === 1) {
      await fail(first, error);
      return [];
    }
  }
  const middle = rows.length >> 1;
  const before = await workInSavepoints(db, rows.slice(0, middle), { work, fail });
  return [...before, ...(await workInSavepoints(db, rows.slice(middle), { work, fail }))];
}
