import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { ConfigError } from "../runtime/config.ts";
import { storeSchema } from "./store-schema.ts";

/** The signer's own records: a SQLite file that only the signer opens. Its tables are append-only. */
export type Store = DatabaseSync;

/**
 * Opens the store. Throws ConfigError when the file does not exist: a signer that starts with empty records would count all
 * earlier payouts as not made.
 * @param path `:memory:` for a store that ends with the process (tests)
 */
export function openStore(path: string): Store {
  if (path !== ":memory:" && !existsSync(path))
    throw new ConfigError(
      `the signer's store ${path} does not exist: create it with \`signer init\` or \`signer rebuild\``,
    );
  return createStore(path);
}

/** Opens the store like `openStore`, and creates it if it does not exist. */
export function createStore(path: string): Store {
  const store = new DatabaseSync(path, { enableForeignKeyConstraints: true });
  // An answer must not leave before its record is on disk.
  store.exec("pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 5000");
  store.exec(storeSchema);
  return store;
}

/** Runs synchronous statements in one transaction, which an error rolls back. */
export function inStoreTransaction<T>(store: Store, work: () => T): T {
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
