import { existsSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { ConfigError } from "../runtime/config.ts";
import { appendEntry, findNewestEntry, machineActor } from "./audit/entries.ts";
import { storeSchema } from "./store-schema.ts";

/** The signer's own records: a SQLite file that only the signer opens. Its tables are append-only. */
export type Store = DatabaseSync;

/** Keeps each statement, because parsing it takes longer than running it. The texts are constants of this module. */
class CachingStore extends DatabaseSync {
  readonly #statements = new Map<string, StatementSync>();

  override prepare(text: string): StatementSync {
    const statement = this.#statements.get(text) ?? super.prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }
}

/**
 * Opens the store. Throws ConfigError when the file does not exist: a signer that starts with empty records would count all
 * earlier payouts as not made.
 */
export function openStore(path: string): Store {
  if (!existsSync(path))
    throw new ConfigError(
      `the signer's store ${path} does not exist: create it with \`signer init\` for a new deployment, or with \`signer rebuild\` if it was lost (docs/keys.md)`,
    );
  return openFile(path);
}

/**
 * Opens the store like `openStore`, and creates it if it does not exist. The audit log of a new store begins with the command that
 * has created it, so that nobody takes a new store for the one that was lost.
 */
export function createStore(path: string, { command, at }: { command: "init" | "rebuild"; at: Date }): Store {
  const store = openFile(path);
  inStoreTransaction(store, () => {
    if (findNewestEntry(store) !== undefined) return;
    const entry = { action: "store.created", subject: "store", before: null, after: { command } };
    appendEntry(store, { ...entry, actor: machineActor(), at });
  });
  return store;
}

function openFile(path: string): Store {
  const store = new CachingStore(path, { enableForeignKeyConstraints: true });
  // An answer must not leave before its record is on disk.
  store.exec("pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 5000");
  store.exec(storeSchema);
  return store;
}

/** Runs synchronous statements in one transaction, which an error rolls back. Joins a transaction that is open. */
export function inStoreTransaction<T>(store: Store, work: () => T): T {
  if (store.isTransaction) return work();
  store.exec("begin immediate");
  try {
    const result = work();
    store.exec("commit");
    return result;
  } catch (error) {
    store.exec("rollback");
    throw error;
  }
}
