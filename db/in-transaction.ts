import type { Transaction } from "kysely";
import type { Db, Tables } from "./tables.ts";

/** Runs `work` in the open transaction, or in a new transaction when none is open. */
export function inTransaction<T>(db: Db, work: (db: Transaction<Tables>) => Promise<T>): Promise<T> {
  return isTransaction(db) ? work(db) : db.transaction().execute(work);
}

function isTransaction(db: Db): db is Transaction<Tables> {
  return db.isTransaction;
}
