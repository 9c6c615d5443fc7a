import { sql } from "kysely";
import { isRowError } from "./row-errors.ts";
import type { Db, Pool } from "./tables.ts";

/** How the rows of a step are written within an open transaction: see `runInSavepoints`. */
export type RunRows = typeof runInSavepoints;

/**
 * Runs a transaction whose steps call `runRows` for their rows. The first run writes all rows of a step at once. When a row
 * makes it fail, the transaction runs again with `runInSavepoints`, which costs two statements for each step.
 */
export async function transactByRows<T>(db: Pool, work: (db: Db, runRows: RunRows) => Promise<T>): Promise<T> {
  const run = (runRows: RunRows) => db.transaction().execute((transaction) => work(transaction, runRows));
  try {
    return await run(async (_db, rows, step) => (rows.length === 0 ? [] : [await step.work(rows)]));
  } catch (error) {
    if (!isRowError(error)) throw error;
    return run(runInSavepoints);
  }
}

/**
 * Runs `work` on all rows at once within an open transaction. When a row makes it fail, rolls back to a savepoint and
 * bisects the rows until the failing row is alone; `fail` receives that row and its error, and the transaction goes on.
 * Returns the results in the order of the rows. Throws every error that no single row causes, which ends the transaction.
 */
export async function runInSavepoints<R, T>(
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
  const before = await runInSavepoints(db, rows.slice(0, middle), { work, fail });
  return [...before, ...(await runInSavepoints(db, rows.slice(middle), { work, fail }))];
}

/** Runs one step of an open transaction. Returns what it throws, after a rollback to the state before the step. */
export async function trySavepoint<T>(
  db: Db,
  work: () => Promise<T>,
): Promise<{ ok: true; value: T } | { ok: false; error: unknown }> {
  await sql`savepoint step`.execute(db);
  try {
    const value = await work();
    await sql`release savepoint step`.execute(db);
    return { ok: true, value };
  } catch (error) {
    await sql`rollback to savepoint step`.execute(db);
    await sql`release savepoint step`.execute(db);
    return { ok: false, error };
  }
}

/**
 * Runs one step of an open transaction until it returns a result. After each run without one, rolls back to the state before the step,
 * which also unlocks what that run has locked.
 */
export async function repeatInSavepoint<T>(db: Db, work: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    await sql`savepoint run`.execute(db);
    const result = await work();
    if (result === undefined) await sql`rollback to savepoint run`.execute(db);
    await sql`release savepoint run`.execute(db);
    if (result !== undefined) return result;
  }
}
