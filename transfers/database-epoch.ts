import type { Logger } from "pino";
import { beginEpoch, countUnlessRecent, type EpochRow, incrementEpochCount, readEpoch } from "../db/epoch.ts";
import type { Db, Pool } from "../db/tables.ts";

/** A copy of the database's count outside the database. Losing it is not evidence of lost commits. */
export type EpochStore = {
  /** Returns the highest count that any process has seen, or undefined when it is not available. */
  read(): Promise<number | undefined>;
  raise(count: number): Promise<void>;
};

/**
 * Detects that the database has lost commits: after a restore, or a failover to a replica that lacks the last commits. The
 * transactions of these commits may have been broadcast, so a new epoch begins, and nothing is signed until every chain has
 * been read again (see caught-up.ts).
 */
export type Epoch = {
  /** Compares the database with the highest count seen before, and returns the id of the current epoch. */
  check(): Promise<string>;
  /** Compares and raises the count. Called once a second. */
  tick(): Promise<void>;
  /**
   * Raises the count in a database transaction that stores signed bytes, as its last statement. The result is `ok` when
   * every given epoch, in which the decision to sign was made, is still the current one; otherwise the database has lost
   * commits and the caller must roll back. `afterCommit` must be awaited after the commit and before the bytes are broadcast.
   */
  pass(db: Db, ...epochs: string[]): Promise<{ ok: true; afterCommit: () => Promise<void> } | { ok: false }>;
};

/** Opens the detection of epoch changes for one process. */
export function openEpoch({ db, memory, log }: { db: Pool; memory: EpochStore; log: Logger }): Epoch {
  /** The highest count that this process has seen committed. */
  let highest = 0;
  const raiseHighest = async (count: number): Promise<void> => {
    if (count <= highest) return;
    highest = count;
    await memory.raise(count);
  };
  const check = async (): Promise<string> => {
    // Read before the database: a count that is raised during the query does not prove the result stale.
    const floor = Math.max(highest, (await memory.read()) ?? 0);
    const row = await readEpoch(db);
    const evidence = findEvidence(row, floor);
    if (!evidence) {
      await raiseHighest(row.count);
      return row.id;
    }
    if (await beginEpoch(db, { id: row.id, count: floor }))
      log.error(
        { evidence, count: row.count, seen: floor, identity: row.identity, live: row.live },
        "database lost commits; nothing is signed until every chain has been read again",
      );
    return (await readEpoch(db)).id;
  };
  return {
    check,
    async tick() {
      // Before the count: a restored database's last one says since when commits are lost.
      await check();
      const count = await countUnlessRecent(db);
      if (count !== undefined) await raiseHighest(count);
    },
    async pass(tx, ...epochs) {
      const floor = highest;
      const row = await incrementEpochCount(tx);
      if (epochs.some((epoch) => epoch !== row.id) || findEvidence({ ...row, count: row.count - 1 }, floor))
        return { ok: false };
      return { ok: true, afterCommit: () => raiseHighest(row.count) };
    },
  };
}

/** Returns the evidence that the database is older than it was before, or undefined. */
function findEvidence(row: EpochRow, floor: number): "count" | "identity" | undefined {
  if (row.identity !== row.live) return "identity";
  return row.count < floor ? "count" : undefined;
}
