import type { Logger } from "pino";
import { recordKeyUses } from "../../db/queries/api-keys.ts";
import type { Db } from "../../db/tables.ts";

/** The minimum time between two stored uses of one key, milliseconds. The database enforces it between processes. */
const USE_INTERVAL_MS = 60_000;

/** When and from where API keys are used. Requests only note a use; `store` writes what was noted. */
export type KeyUses = {
  note(use: { keyId: string; lastUsedAt: Date | null; address: string }): void;
  /** Never throws: a use that cannot be stored is logged and dropped. */
  store(): Promise<void>;
};

/** Returns a recorder of key uses that keeps the first use of each key until it is stored. */
export function createKeyUses(deps: { db: Db; now: () => Date; log: Pick<Logger, "warn"> }): KeyUses {
  let noted = new Map<string, { at: Date; address: string }>();
  return {
    note({ keyId, lastUsedAt, address }) {
      const at = deps.now();
      const isStored = lastUsedAt !== null && at.getTime() - lastUsedAt.getTime() < USE_INTERVAL_MS;
      if (!isStored && !noted.has(keyId)) noted.set(keyId, { at, address });
    },
    async store() {
      const uses = [...noted].map(([keyId, use]) => ({ keyId, ...use }));
      noted = new Map();
      if (uses.length === 0) return;
      await recordKeyUses(deps.db, uses).catch((err: unknown) =>
        deps.log.warn({ err, keys: uses.length }, "the last use of API keys was not stored"),
      );
    },
  };
}
