import { type Insertable, sql } from "kysely";
import { fromNow } from "./clock.ts";
import type { Db, Tables } from "./tables.ts";

/** How far a chain has been read, in one watcher's hands: writes with an older fence match no row. */
export type Cursor = { chain: string; number: number; hash: string; finalNumber: number; fence: number };

/**
 * How far a watcher has come. `reachedHeadAt`: when it asked for the head at which it stands. `chainTime`: the chain's own
 * time up to which it has read everything. What is undefined stays as it was.
 */
export type Reached = { reachedHeadAt?: Date | undefined; chainTime?: Date | undefined };

function toColumns({ reachedHeadAt, chainTime }: Reached) {
  return {
    ...(reachedHeadAt ? { reached_head_at: reachedHeadAt } : {}),
    ...(chainTime ? { chain_time: chainTime } : {}),
  };
}

/** Starts reading a chain at a block, the first time it is watched; false when it was watched before. */
export async function ensureCursor(
  db: Db,
  args: { chain: string; number: number; hash: string; dueAt: Date; assets: readonly string[] },
): Promise<boolean> {
  const { chain, number, hash, dueAt, assets } = args;
  const row = {
    chain,
    number,
    hash,
    final_number: number,
    assets: [...assets],
    due_at: dueAt,
    reached_head_at: null,
    owner: null,
    lease_until: null,
    // What was never watched cannot have been forgotten.
    epoch: sql<string>`(select id from database_epoch)`,
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
 * Takes the watch over a chain, raising its fence; undefined while another owner's lease lasts. `assets`: those of which
 * everything up to the cursor has been read. `rereading`: those that are read again, which is not complete yet.
 */
export async function takeCursor(
  db: Db,
  args: { chain: string; owner: string; leaseMs: number },
): Promise<(Cursor & { assets: string[]; rereading: string[] }) | undefined> {
  const until = fromNow(args.leaseMs);
  return db
    .updateTable("chain_cursor")
    .set({ owner: args.owner, lease_until: until, due_at: until, fence: sql`fence + 1` })
    .where("chain", "=", args.chain)
    .where(sql<boolean>`(lease_until is null or lease_until <= clock_timestamp())`)
    .returning(["chain", "number", "hash", "final_number as finalNumber", "fence", "assets"])
    .returning(
      sql<
        string[]
      >`array(select u.asset from unread_asset u where u.chain = chain_cursor.chain and u.until is not null)`.as(
        "rereading",
      ),
    )
    .executeTakeFirst();
}

/** Keeps the watch for longer; does nothing when it is somebody else's by now. */
export async function renewCursor(db: Db, cursor: Cursor, leaseMs: number): Promise<void> {
  const until = fromNow(leaseMs);
  await db
    .updateTable("chain_cursor")
    .set({ lease_until: until, due_at: until })
    .where("chain", "=", cursor.chain)
    .where("fence", "=", cursor.fence)
    // A renewal that was on its way when the watch was released does not take it again.
    .where("owner", "is not", null)
    .execute();
}

/** Lets go of the watch; the due time stays, so that the sweep rings if nobody goes on. */
export async function releaseCursor(db: Db, cursor: Cursor, reached: Reached): Promise<void> {
  await db
    .updateTable("chain_cursor")
    .set({ owner: null, lease_until: null, ...toColumns(reached) })
    .where("chain", "=", cursor.chain)
    .where("fence", "=", cursor.fence)
    .execute();
}

/**
 * Moves the cursor to another block; confirmed heights above it are taken back. False when it does not stand where it
 * is believed to, or the watch is somebody else's.
 */
export async function advanceCursor(
  db: Db,
  from: Cursor,
  to: Reached & { number: number; hash: string; leaseMs: number },
): Promise<boolean> {
  const until = fromNow(to.leaseMs);
  const result = await db
    .updateTable("chain_cursor")
    .set({
      number: to.number,
      hash: to.hash,
      final_number: sql`least(final_number, ${to.number})`,
      lease_until: until,
      due_at: until,
      ...toColumns(to),
    })
    .where("chain", "=", from.chain)
    .where("fence", "=", from.fence)
    .where("number", "=", from.number)
    .where("hash", "=", from.hash)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/** Notes up to which height everything has been confirmed. */
export async function raiseFinal(db: Db, args: { chain: string; finalNumber: number }): Promise<void> {
  await db
    .updateTable("chain_cursor")
    .set({ final_number: args.finalNumber })
    .where("chain", "=", args.chain)
    .where("final_number", "<", args.finalNumber)
    .execute();
}

/** True when the chain has a cursor. */
export async function isWatched(db: Db, chain: string): Promise<boolean> {
  return (
    (await db.selectFrom("chain_cursor").select("chain").where("chain", "=", chain).executeTakeFirst()) !== undefined
  );
}

/** When the watcher of a chain last stood at its head. */
export async function findReachedHead(db: Db, chain: string): Promise<Date | undefined> {
  const row = await db
    .selectFrom("chain_cursor")
    .select("reached_head_at")
    .where("chain", "=", chain)
    .executeTakeFirst();
  return row?.reached_head_at ?? undefined;
}

/** Remembers blocks, so that a later one's parent can be followed. */
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
        read_by: eb.ref("excluded.read_by"),
      })),
    )
    .execute();
}

/** The remembered block at a height. */
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
 * Who was believed for the blocks of a range, lowest first: each remembered block, and the first one above the range, stands
 * for those below it that are not remembered.
 */
export async function listReaders(
  db: Db,
  args: { chain: string; from: number; to: number },
): Promise<{ number: number; readBy: string | null }[]> {
  const { rows } = await sql<{ number: number; readBy: string | null }>`
    select number, read_by as "readBy" from chain_block where chain = ${args.chain} and number >= ${args.from}
      and number <= coalesce((
        select min(number) from chain_block where chain = ${args.chain} and number >= ${args.to}), ${args.to})
    order by number`.execute(db);
  return rows;
}

/** The highest remembered block below a height. (A long gap leaves few of its blocks.) */
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

/** Base fee of the newest block read, wei per gas. */
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

/** Forgets blocks above a height (a reorg took them) and below another (nobody asks any more). */
export async function forgetBlocks(db: Db, args: { chain: string; above?: number; below?: number }): Promise<void> {
  await sql`delete from chain_block where chain = ${args.chain}
    and (number > ${args.above ?? Number.MAX_SAFE_INTEGER} or number < ${args.below ?? -1})`.execute(db);
}
