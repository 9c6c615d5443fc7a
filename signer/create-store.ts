import { appendEntry, findNewestEntry, machineActor } from "./audit/entries.ts";
import { inStoreTransaction, openStoreFile, type Store } from "./store.ts";

/**
 * Opens the store like `openStore`, and creates it if it does not exist. The audit log of a new store begins with the command that
 * has created it, so that an operator does not take a new store for the one that was lost.
 */
export function createStore(path: string, { command, at }: { command: "init" | "rebuild"; at: Date }): Store {
  const store = openStoreFile(path);
  inStoreTransaction(store, () => {
    if (findNewestEntry(store) !== undefined) return;
    const entry = { action: "store.created", subject: "store", before: null, after: { command } };
    appendEntry(store, { ...entry, actor: machineActor(), at });
  });
  return store;
}
