import { type Insertable, sql } from "kysely";
import { fromNow } from "../clock.ts";
import type { Db, Tables } from "../tables.ts";

/** How far a chain has been read, with the watcher's fencing token: writes with an older fence match no row. */
export type Cursor = { chain: string; number: number; blockId: string; finalNumber: number; fence: number };

/**
 * A watcher's progress. `reachedHeadAt`: when it asked for the head that it has reached. `chainTime`: the chain's own time
 * up to which it has read everything. An undefined member leaves the stored value unchanged.
 */
export type Reached = { reachedHeadAt?: Date | undefined; chainTime?: Date | undefined };

/** Returns the columns of the members that are set. */
function toColumns({ reachedHeadAt, chainTime }: Reached) {
  return {
    ...(reachedHeadAt ? { reached_head_at: reachedHeadAt } : {}),
    ...(chainTime ? { chain_time: chainTime } : {}),
  };
}

/**
 * Creates the cursor of a chain that is watched for the first time. Returns false when the chain has one already.
 * @param args.finalNumber the ledger is complete up to here; `number` when unset
 */
export async function ensureCursor(
  db: Db,
  args: {
    chain: string;
    number: number;
    finalNumber?: number;
    blockId: string;
    dueAt: Date;
    assets: readonly string[];
  },
): Promise<boolean> {
  const { chain, number, finalNumber = number, blockId, dueAt, assets } = args;
  const row = {
    chain,
    number,
    block_id: blockId,
    final_number: finalNumber,
    assets: [...assets],
    due_at: dueAt,
    reached_head_at: null,
    owner: null,
    lease_until: null,
    // In the first epoch, no restore can have lost what was read. In others, the chain counts as unread.
    epoch: sql<string | null>`(select id from database_epoch where began_at is null)`,
  };
  const inserted = await db
    .insertInto("chain_cursor")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .returning("chain")
    .executeTakeFirst();
  return inserted !== undefined;
}

/**
 * Leases a chain's cursor and increments its fence. Returns undefined while another owner has the lease. `assets`: the
 * assets that have been read completely up to the cursor. `rereading`: the assets with a backfill in progress.
 */
export async function takeCursor(
  db: Db,
  args: { chain: string; owner: string; leaseMs: number },
): Promise<(Cursor & { assets: string[]; rereading: string[] }) | undefined> {
  const until = fromNow(args.leaseMs);
  const row = await db
    .updateTable("chain_cursor")
    .set({ owner: args.owner, lease_until: until, due_at: until, fence: sql`fence + 1` })
    .where("chain", "=", args.chain)
    .where(sql<boolean>`(lease_until is null or lease_until <= clock_timestamp())`)
    .returning(["chain", "number", "block_id", "final_number", "fence", "assets"])
    .returning(
      sql<
        string[]
      >`array(select u.asset from asset_backfill u where u.chain = chain_cursor.chain and u.until is not null)`.as(
        "rereading",
      ),
    )
    .executeTakeFirst();
  if (!row) return undefined;
  const { block_id: blockId, final_number: finalNumber, ...same } = row;
  return { ...same, blockId, finalNumber };
}

/** Renews the lease. Does nothing when another watcher has it by now. */
export async function renewCursor(db: Db, cursor: Cursor, leaseMs: number): Promise<void> {
  const until = fromNow(leaseMs);
  await db
    .updateTable("chain_cursor")
    .set({ lease_until: until, due_at: until })
    .where("chain", "=", cursor.chain)
    .where("fence", "=", cursor.fence)
    // A renewal that arrives after the release does not take the lease again.
    .where("owner", "is not", null)
    .execute();
}

/** Releases the lease. Keeps the due time, so that the sweep enqueues a job if no other watcher continues. */
export async function releaseCursor(db: Db, cursor: Cursor, reached: Reached): Promise<void> {
  await db
    .updateTable("chain_cursor")
    .set({ owner: null, lease_until: null, ...toColumns(reached) })
    .where("chain", "=", cursor.chain)
    .where("fence", "=", cursor.fence)
    .execute();
}

/**
 * Moves the cursor to another block, and lowers the final height to at most that block. Returns false when the cursor is
 * not at `from`, or when another watcher has the lease.
 */
export async function advanceCursor(
  db: Db,
  from: Cursor,
  to: Reached & { number: number; blockId: string; leaseMs: number },
): Promise<boolean> {
  const until = fromNow(to.leaseMs);
  const result = await db
    .updateTable("chain_cursor")
    .set({
      number: to.number,
      block_id: to.blockId,
      final_number: sql`least(final_number, ${to.number})`,
      lease_until: until,
      due_at: until,
      ...toColumns(to),
    })
    .where("chain", "=", from.chain)
    .where("fence", "=", from.fence)
    .where("number", "=", from.number)
    .where("block_id", "=", from.blockId)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/** Raises the height up to which everything has been confirmed. Does nothing when another watcher has the lease by now. */
export async function raiseFinal(db: Db, cursor: Pick<Cursor, "chain" | "finalNumber" | "fence">): Promise<void> {
  await db
    .updateTable("chain_cursor")
    .set({ final_number: cursor.finalNumber })
    .where("chain", "=", cursor.chain)
    .where("fence", "=", cursor.fence)
    .where("final_number", "<", cursor.finalNumber)
    .execute();
}

/** Returns true when the chain has a cursor. */
export async function isWatched(db: Db, chain: string): Promise<boolean> {
  return (
    (await db.selectFrom("chain_cursor").select("chain").where("chain", "=", chain).executeTakeFirst()) !== undefined
  );
}

/**
 * Returns when the watchers of these chains are due. A worker that has a chain in its networks file moves that time every few
 * seconds, also while no endpoint answers. A chain that no worker has ever had is missing.
 */
export async function listWatchTimes(db: Db, chains: readonly string[]): Promise<ReadonlyMap<string, Date>> {
  const rows = await db
    .selectFrom("chain_cursor")
    .select(["chain", "due_at"])
    .where(sql<boolean>`chain = any(${chains})`)
    .where("due_at", "is not", null)
    .$narrowType<{ due_at: Date }>()
    .execute();
  return new Map(rows.map(({ chain, due_at }) => [chain, due_at]));
}

/** Returns when a chain's watcher last reached the head. */
export async function findReachedHead(db: Db, chain: string): Promise<Date | undefined> {
  const row = await db
    .selectFrom("chain_cursor")
    .select("reached_head_at")
    .where("chain", "=", chain)
    .executeTakeFirst();
  return row?.reached_head_at ?? undefined;
}

/** Stores blocks, against which the parent hashes of later blocks are checked. */
export async function insertBlocks(db: Db, rows: readonly Insertable<Tables["chain_block"]>[]): Promise<void> {
  await db
    .insertInto("chain_block")
    .values([...rows])
    .onConflict((conflict) =>
      conflict.columns(["chain", "number"]).doUpdateSet((eb) => ({
        hash: eb.ref("excluded.hash"),
        parent_hash: eb.ref("excluded.parent_hash"),
        base_fee: eb.ref("excluded.base_fee"),
        at: eb.ref("excluded.at"),
        source_endpoint: eb.ref("excluded.source_endpoint"),
      })),
    )
    .execute();
}

/** Returns the stored block at a height. */
export async function findBlock(
  db: Db,
  args: { chain: string; number: number },
): Promise<{ hash: string; at: Date } | undefined> {
  return db
    .selectFrom("chain_block")
    .select(["hash", "at"])
    .where("chain", "=", args.chain)
    .where("number", "=", args.number)
    .executeTakeFirst();
}

/**
 * Returns which endpoint the blocks of a range were read from, lowest block first. Each stored block, and the first stored
 * block above the range, also stands for the blocks below it that are not stored.
 */
export async function listBlockSources(
  db: Db,
  args: { chain: string; from: number; to: number },
): Promise<{ number: number; source_endpoint: string | null }[]> {
  const { rows } = await sql<{ number: number; source_endpoint: string | null }>`
    select number, source_endpoint from chain_block where chain = ${args.chain} and number >= ${args.from}
      and number <= coalesce((
        select min(number) from chain_block where chain = ${args.chain} and number >= ${args.to}), ${args.to})
    order by number`.execute(db);
  return rows;
}

/** Returns the highest stored block below a height. (Few blocks of a long gap are stored.) */
export async function findBlockBelow(
  db: Db,
  args: { chain: string; number: number },
): Promise<{ number: number; hash: string; at: Date } | undefined> {
  return db
    .selectFrom("chain_block")
    .select(["number", "hash", "at"])
    .where("chain", "=", args.chain)
    .where("number", "<", args.number)
    .orderBy("number", "desc")
    .limit(1)
    .executeTakeFirst();
}

/** Returns the base fee of the newest block that was read, wei per gas. */
export async function findBaseFee(db: Db, chain: string): Promise<bigint | undefined> {
  const row = await db
    .selectFrom("chain_block")
    .select("base_fee")
    .where("chain", "=", chain)
    .orderBy("number", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.base_fee;
}

/** Deletes blocks above a height (a reorg removed them) and below another (no longer needed). */
export async function deleteBlocks(db: Db, args: { chain: string; above?: number; below?: number }): Promise<void> {
  await sql`delete from chain_block where chain = ${args.chain}
    and (number > ${args.above ?? Number.MAX_SAFE_INTEGER} or number < ${args.below ?? -1})`.execute(db);
}
