import { sql } from "kysely";
import type { Db } from "./tables.ts";

/** How often the count of the database's epoch is raised by the whole fleet at least, milliseconds. */
const COUNT_EVERY_MS = 900;

/** The database's epoch as its row has it; `live` is what the server says of itself now, and should be the `identity`. */
export type EpochRow = { id: string; count: number; identity: string; live: string };

const columns = sql`id, count, identity, database_identity(tableoid) as live`;

export async function readEpoch(db: Db): Promise<EpochRow> {
  const { rows } = await sql<EpochRow>`select ${columns} from database_epoch`.execute(db);
  return theOne(rows);
}

/** Raises the count, in the transaction of what is counted. Transactions that do so wait for each other: do it last. */
export async function countInEpoch(db: Db): Promise<EpochRow> {
  const { rows } = await sql<EpochRow>`
    update database_epoch set count = count + 1, counted_at = clock_timestamp() returning ${columns}`.execute(db);
  return theOne(rows);
}

/** Raises the count unless another process has done so within the last second. */
export async function keepCounting(db: Db): Promise<void> {
  await sql`
    update database_epoch set count = count + 1, counted_at = clock_timestamp()
    where counted_at <= clock_timestamp() - make_interval(secs => ${COUNT_EVERY_MS / 1_000})`.execute(db);
}

/**
 * Begins a new epoch after the one with an id, and counts on from a number. False when another process has begun one
 * already.
 */
export async function beginEpoch(db: Db, after: { id: string; count: number }): Promise<boolean> {
  const result = await sql`
    update database_epoch set id = gen_random_uuid()::text, count = greatest(count, ${after.count}::bigint) + 1,
      counted_at = clock_timestamp(), began_at = clock_timestamp(), identity = database_identity(tableoid)
    where id = ${after.id}`.execute(db);
  return result.numAffectedRows === 1n;
}

/** When the database was last found to have stepped back in time. */
export async function findLastStep(db: Db): Promise<Date | undefined> {
  const row = await db.selectFrom("database_epoch").select("began_at").executeTakeFirst();
  return row?.began_at ?? undefined;
}

/**
 * Returns the epoch whose reading of a chain is not finished, with the height up to which it has to go once that is
 * known; undefined when the chain was read in the present epoch.
 */
export async function findUnread(
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

/** Chains that have not been read in the present epoch. */
export async function listUnread(db: Db): Promise<string[]> {
  const { rows } = await sql<{ chain: string }>`
    select c.chain from chain_cursor c, database_epoch e
    where c.epoch is distinct from e.id or c.epoch_height is not null order by c.chain`.execute(db);
  return rows.map(({ chain }) => chain);
}

/** Notes up to which height a chain has to be read in an epoch. */
export async function noteUnread(db: Db, args: { chain: string; epoch: string; height: number }): Promise<void> {
  await db
    .updateTable("chain_cursor")
    .set({ epoch: args.epoch, epoch_height: args.height })
    .where("chain", "=", args.chain)
    .where(sql<boolean>`epoch is distinct from ${args.epoch}`)
    .execute();
}

/** Notes that a chain was read in an epoch up to the height that it had to be. */
export async function noteRead(db: Db, args: { chain: string; epoch: string; upTo: number }): Promise<void> {
  await db
    .updateTable("chain_cursor")
    .set({ epoch_height: null })
    .where("chain", "=", args.chain)
    .where("epoch", "=", args.epoch)
    .where("epoch_height", "<=", args.upTo)
    .execute();
}

function theOne(rows: readonly EpochRow[]): EpochRow {
  const [row] = rows;
  if (!row) throw new Error("the database has no epoch: its row has been deleted");
  return { ...row, count: Number(row.count) };
}
