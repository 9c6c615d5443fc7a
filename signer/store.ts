import { existsSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { ConfigError } from "../runtime/config.ts";
import { storeSchema } from "./store-schema.ts";

/**
 * The signer's own records: a SQLite file that only the signer opens. Its tables are append-only. Keeps each statement, because
 * parsing it takes longer than running it. The texts are constants of this module.
 */
export class Store extends DatabaseSync {
  /** Sums that the open transaction has read (signer/records.ts): no other process writes until it ends. */
  readonly sums = new Map<string, bigint>();
  readonly #statements = new Map<string, StatementSync>();

  override prepare(text: string): StatementSync {
    const statement = this.#statements.get(text) ?? super.prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }
}

/**
 * Opens the store. Throws ConfigError when the file cannot be used, and when it does not exist: a signer that starts with empty
 * records would count all earlier payouts as not made.
 */
export function openStore(path: string): Store {
  if (!existsSync(path))
    throw new ConfigError(
      `the signer's store ${path} does not exist: create it with \`signer init\` for a new deployment, or with \`signer rebuild\` if it was lost (docs/keys.md)`,
    );
  return openStoreFile(path);
}

/** Opens the file of a store, which SQLite creates if it does not exist. Throws ConfigError when it cannot be used. */
export function openStoreFile(path: string): Store {
  try {
    const store = new Store(path, { enableForeignKeyConstraints: true });
    // An answer must not leave before its record is on disk. Pages that many payouts change are copied to the file less often.
    store.exec(
      "pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 5000; pragma wal_autocheckpoint = 4000",
    );
    store.exec(storeSchema);
    return store;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigError(
      `the signer's store ${path} cannot be used: ${reason}. Does its disk have space, and may the signer write there?`,
    );
  }
}

/**
 * Runs synchronous reads on the store as it is at the first of them, whatever another process writes meanwhile, which it does not
 * keep from writing.
 */
export function inReadTransaction<T>(store: Store, read: () => T): T {
  if (store.isTransaction) return read();
  store.exec("begin");
  try {
    return read();
  } finally {
    endTransaction(store);
  }
}

/** Runs synchronous statements in one transaction, which an error rolls back. Joins a transaction that is open. */
export function inStoreTransaction<T>(store: Store, work: () => T): T {
  if (store.isTransaction) return work();
  store.exec("begin immediate");
  store.sums.clear();
  try {
    const result = work();
    store.exec("commit");
    return result;
  } catch (error) {
    endTransaction(store);
    throw error;
  }
}

/** Rolls the transaction back, unless an error has done so: on a full disk SQLite ends the transaction itself. */
function endTransaction(store: Store): void {
  if (store.isTransaction) store.exec("rollback");
}
