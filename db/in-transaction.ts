import { sql, type Transaction } from "kysely";
import type { Db, Pool, Tables } from "./tables.ts";

/** Runs `work` in the open transaction, or in a new transaction when none is open. */
export function inTransaction<T>(db: Db, work: (db: Transaction<Tables>) => Promise<T>): Promise<T> {
  return isTransaction(db) ? work(db) : db.transaction().execute(work);
}

function isTransaction(db: Db): db is Transaction<Tables> {
  return db.isTransaction;
}

/**
 * Limits for how long each statement of the transaction waits for a lock, milliseconds. A statement that waits longer fails
 * with SQLSTATE 55P03.
 */
export async function limitLockWaits(db: Transaction<Tables>, ms: number): Promise<void> {
  await sql`select set_config('lock_timeout', ${String(ms)}, true)`.execute(db);
}

/**
 * Runs work in a transaction of its own. Commits a result that is `ok`; rolls back any other result. Returns the result
 * in both cases. An error of the work rolls back and is thrown.
 */
export async function commitIfOk<R extends { ok: boolean }>(
  db: Pool,
  work: (db: Transaction<Tables>) => Promise<R>,
): Promise<R> {
  const rollback = new Error("rolled back");
  const refused: { result?: R } = {};
  try {
    return await db.transaction().execute(async (transaction) => {
      const result = await work(transaction);
      if (result.ok) return result;
      refused.result = result;
      throw rollback;
    });
  } catch (error) {
    if (error === rollback && refused.result) return refused.result;
    throw error;
  }
}
