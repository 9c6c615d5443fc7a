import { sql } from "kysely";
import type { Db } from "./tables.ts";

/** How far a server is: a byte position of the WAL, and the epoch of the database there; null: not known. */
export type WalPosition = { lsn: bigint; epoch: string | null };

/**
 * Returns how far the primary has written. Every transaction that was committed before the call is below that. The epoch is
 * null after a promotion, until a worker begins a new one: a replica that has not followed the promoted server has the old
 * epoch too. Where `database_identity()` may not read the timeline, this is not noticed.
 */
export const readPrimaryPosition = (db: Db): Promise<WalPosition> =>
  readPosition(db, "pg_current_wal_lsn()", "case when identity = database_identity(tableoid) then id end");

/** Returns how far a standby has replayed, or how far it has written if it has been promoted. */
export const readReplicaPosition = (db: Db): Promise<WalPosition> =>
  readPosition(db, "case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end", "id");

async function readPosition(db: Db, lsn: string, epoch: string): Promise<WalPosition> {
  const { rows } = await sql<WalPosition & { lsn: string }>`
    select (${sql.raw(lsn)} - '0/0')::text as lsn, ${sql.raw(epoch)} as epoch from database_epoch`.execute(db);
  const [row] = rows;
  if (!row) throw new Error("the row of database_epoch has been deleted");
  return { lsn: BigInt(row.lsn), epoch: row.epoch };
}

/** The newest moment (`at`, milliseconds) at which a primary was at a position. */
export type PositionSample = WalPosition & { at: number };

/**
 * Returns the moment that a replica's data is at least as new as; undefined when no sample is old enough, or when the two
 * servers have different histories: one of them was restored or promoted.
 * @param samples positions of the primary, oldest first
 */
export function findDataTime(samples: readonly PositionSample[], replica: WalPosition): number | undefined {
  if (samples.at(-1)?.epoch !== replica.epoch) return undefined;
  return samples.findLast(({ lsn, epoch }) => epoch === replica.epoch && lsn <= replica.lsn)?.at;
}
