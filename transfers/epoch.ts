import type { Logger } from "pino";
import { beginEpoch, countInEpoch, type EpochRow, keepCounting, readEpoch } from "../db/epoch.ts";
import type { Db, Pool } from "../db/tables.ts";

/** What the fleet remembers of the database's count outside of it. It may forget: that is no evidence of anything. */
export type EpochMemory = {
  /** The highest count that any process has seen; undefined when it is not known now. */
  read(): Promise<number | undefined>;
  raise(count: number): Promise<void>;
};

/**
 * Notices that the database has stepped back in time: a restore, or a failover to a replica that lacks the last commits.
 * What it forgot may have been sent, so a new epoch begins, and nothing is signed until every chain was read again (see
 * caught-up.ts).
 */
export type Epoch = {
  /** Compares the database with what was seen before, and returns the id of the present epoch. */
  check(): Promise<string>;
  /** Counts on and compares. To be called every second. */
  tick(): Promise<void>;
  /**
   * Counts in a transaction that stores signed bytes, as its last statement. Throws SteppedBack when the epoch is not the
   * one in which it was decided to sign, or not all of those in which it was decided for several chains. What it returns is to be awaited after the commit, and before the bytes are sent.
   */
  pass(db: Db, ...epochs: string[]): Promise<() => Promise<void>>;
};

/** Undoes a transaction that would store bytes which were signed for a database that is not there any more. */
export class SteppedBack extends Error {
  override readonly name = "SteppedBack";
}

/** Opens the watch over the database's epoch for one process. */
export function openEpoch({ db, memory, log }: { db: Pool; memory: EpochMemory; log: Logger }): Epoch {
  /** The highest count that this process has seen committed. */
  let highest = 0;
  const note = async (count: number): Promise<void> => {
    if (count <= highest) return;
    highest = count;
    await memory.raise(count);
  };
  const check = async (): Promise<string> => {
    // Before the database is asked: what was counted while it answers does not prove its answer old.
    const floor = Math.max(highest, (await memory.read()) ?? 0);
    const row = await readEpoch(db);
    const evidence = findEvidence(row, floor);
    if (!evidence) {
      await note(row.count);
      return row.id;
    }
    if (await beginEpoch(db, { id: row.id, count: floor }))
      log.error(
        { evidence, count: row.count, seen: floor, identity: row.identity, live: row.live },
        "the database has stepped back in time: nothing is signed until every chain was read again",
      );
    return (await readEpoch(db)).id;
  };
  return {
    check,
    async tick() {
      await keepCounting(db);
      await check();
    },
    async pass(tx, ...epochs) {
      const floor = highest;
      const row = await countInEpoch(tx);
      if (epochs.some((epoch) => epoch !== row.id) || findEvidence({ ...row, count: row.count - 1 }, floor))
        throw new SteppedBack();
      return () => note(row.count);
    },
  };
}

/** Returns what shows that the database is from an earlier time than was seen before. */
function findEvidence(row: EpochRow, floor: number): "count" | "identity" | undefined {
  if (row.identity !== row.live) return "identity";
  return row.count < floor ? "count" : undefined;
}
