import { sql } from "kysely";
import type { Db } from "./tables.ts";

/** The longest interval between two increments of the epoch's count, over all processes, milliseconds. */
const COUNT_EVERY_MS = 900;
/** A chain that gets its cursor this long after a step back was not watched in the lost commits, days. */
const SEARCHED_DAYS = 7;
/** How far a chain's clock may be behind the database's, hours. */
const SKEW_HOURS = 1;

/** The row of the database's epoch. `live` is the server's identity now, which should equal the stored `identity`. */
export type EpochRow = { id: string; count: number; identity: string; live: string };

const columns = sql`id, count, identity, database_identity(tableoid) as live`;

const isSearched = sql<boolean>`began_at > clock_timestamp() - make_interval(days => ${SEARCHED_DAYS})`;

/** Returns the database's current epoch. */
export async function readEpoch(db: Db): Promise<EpochRow> {
  const { rows } = await sql<EpochRow>`select ${columns} from database_epoch`.execute(db);
  return theOnly(rows);
}

/**
 * Increments the count within the transaction that it counts. Such transactions wait for each other, so call this last in
 * the transaction.
 */
export async function incrementEpochCount(db: Db): Promise<EpochRow> {
  const { rows } = await sql<EpochRow>`
    update database_epoch set count = count + 1, counted_at = clock_timestamp() returning ${columns}`.execute(db);
  return theOnly(rows);
}

/**
 * Increments the count and returns it, unless another process has incremented it within `COUNT_EVERY_MS`. Call this only in the
 * current epoch: the last count before a restore says since when commits are lost.
 */
export async function countUnlessRecent(db: Db): Promise<number | undefined> {
  const { rows } = await sql<{ count: string }>`
    update database_epoch set count = count + 1, counted_at = clock_timestamp()
    where counted_at <= clock_timestamp() - make_interval(secs => ${COUNT_EVERY_MS / 1_000}) returning count`.execute(
    db,
  );
  return rows[0] && Number(rows[0].count);
}

/**
 * Begins a new epoch after the one with the given id and continues its count. Commits are lost since its last count, or
 * since an earlier step back after which chains are still searched. Returns false when another process has begun one already.
 */
export async function beginEpoch(db: Db, after: { id: string; count: number }): Promise<boolean> {
  const result = await sql`
    update database_epoch set id = gen_random_uuid()::text, count = greatest(count, ${after.count}::bigint) + 1,
      counted_at = clock_timestamp(), began_at = clock_timestamp(), identity = database_identity(tableoid),
      lost_since = case when ${isSearched} then lost_since else counted_at end
    where id = ${after.id}`.execute(db);
  return result.numAffectedRows === 1n;
}

/**
 * Returns the time after which a chain or an account without a cursor must be read: the database may have lost the cursor,
 * and all that was read. Returns undefined in the first epoch, and a week after the last step back.
 */
export async function findLostSince(db: Db): Promise<Date | undefined> {
  const { rows } = await sql<{ since: Date }>`
    select lost_since - make_interval(hours => ${SKEW_HOURS}) as since from database_epoch where ${isSearched}`.execute(
    db,
  );
  return rows[0]?.since;
}

/**
 * Returns when the database was last found to have been restored to an earlier time (`rewoundAt`), and the position of its
 * WAL in bytes (`walBytes`).
 */
export async function readDatabaseStatus(db: Db): Promise<{ rewoundAt: Date | undefined; walBytes: number }> {
  const { rows } = await sql<{ rewound_at: Date | null; wal_bytes: number }>`
    select began_at as rewound_at, (
      case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end - '0/0')::float8 as wal_bytes
    from database_epoch`.execute(db);
  return { rewoundAt: rows[0]?.rewound_at ?? undefined, walBytes: rows[0]?.wal_bytes ?? 0 };
}

/**
 * Returns the current epoch while a chain has not been read completely in it, with the height up to which the chain must
 * be read, once that is known. Returns undefined when the chain has been read in the current epoch.
 */
export async function findUnreadEpoch(
  db: Db,
  chain: string,
): Promise<{ epoch: string; height: number | undefined } | undefined> {
  const { rows } = await sql<{ id: string; height: number | null }>`
    select e.id, case when c.epoch = e.id then c.epoch_height end as height
    from database_epoch e join chain_cursor c on c.chain = ${chain}
    where c.epoch is distinct from e.id or c.epoch_height is not null`.execute(db);
  const [row] = rows;
  return row && { epoch: row.id, height: row.height ?? undefined };
}

/** Returns the chains that have not been read completely in the current epoch. */
export async function listUnreadChains(db: Db): Promise<string[]> {
  const { rows } = await sql<{ chain: string }>`
    select c.chain from chain_cursor c, database_epoch e
    where c.epoch is distinct from e.id or c.epoch_height is not null order by c.chain`.execute(db);
  return rows.map(({ chain }) => chain);
}

/** Records the height up to which a chain must be read in an epoch. */
export async function recordChainUnread(db: Db, args: { chain: string; epoch: string; height: number }): Promise<void> {
  await db
    .updateTable("chain_cursor")
    .set({ epoch: args.epoch, epoch_height: args.height })
    .where("chain", "=", args.chain)
    .where(sql<boolean>`epoch is distinct from ${args.epoch}`)
    .execute();
}

/** Records that a chain has been read in an epoch up to the required height. */
export async function recordChainRead(db: Db, args: { chain: string; epoch: string; upTo: number }): Promise<void> {
  await db
    .updateTable("chain_cursor")
    .set({ epoch_height: null })
    .where("chain", "=", args.chain)
    .where("epoch", "=", args.epoch)
    .where("epoch_height", "<=", args.upTo)
    .execute();
}

/** Returns the only row. Throws when it has been deleted. */
function theOnly(rows: readonly EpochRow[]): EpochRow {
  const [row] = rows;
  if (!row) throw new Error("the row of database_epoch has been deleted");
  return { ...row, count: Number(row.count) };
}
