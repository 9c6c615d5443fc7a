import { listUnreadChains, readDatabaseStatus } from "../../db/epoch.ts";
import { countLoginEntries, findOldestOpenEntry, findOldestUnexportedHead } from "../../db/queries/audit-heads.ts";
import { listRetentionAges } from "../../db/queries/retention.ts";
import { type GaugeDeps, measureAge } from "./gauge-deps.ts";

const DAY_MS = 24 * 3_600_000;

/** Returns the reads of the gauges of the database itself, of the audit log and of retention. */
export function createDatabaseReads(deps: GaugeDeps) {
  const { db } = deps;
  const now = deps.now();
  return {
    /**
     * When the database was last found to have been rolled back (a restore), which chains have not been reread since, and the
     * position of its WAL in bytes.
     */
    database: async () => {
      const { rewoundAt, walBytes } = await readDatabaseStatus(db);
      const unread = new Set(await listUnreadChains(db));
      return {
        steppedBackAt: rewoundAt,
        walBytes,
        unread: [...deps.chains.keys()].map((chain) => ({ chain, unread: unread.has(chain) })),
      };
    },
    /**
     * Ages in seconds of the oldest head of the audit log that is not exported, and of the oldest entry that no head covers, and the
     * changes of the last day that were made without the service.
     */
    audit: async () => ({
      auditHeadSeconds: measureAge(now, await findOldestUnexportedHead(db)),
      auditEntrySeconds: measureAge(now, await findOldestOpenEntry(db)),
      loginEntries: await countLoginEntries(db, new Date(now.getTime() - DAY_MS)),
    }),
    /** For how many seconds rows of each table of history could have been removed, and how many removals fail. */
    retention: async () => ({
      retention: (await listRetentionAges(db)).map(({ relation, days, next_at, failing }) => ({
        relation,
        behindSeconds: days === null ? 0 : Math.max(0, measureAge(now, next_at) - days * 86_400),
        failing,
      })),
    }),
  };
}
