import { type Insertable, sql } from "kysely";
import type { Db, Tables } from "./tables.ts";

/** How far a chain has been read. */
export type Cursor = { chain: string; number: number; hash: string; finalNumber: number };

/** Starts reading a chain at a block, the first time it is watched; false when it was watched before. */
export async function ensureCursor(
  db: Db,
  args: { chain: string; number: number; hash: string; dueAt: Date },
): Promise<boolean> {
  const { chain, number, hash, dueAt } = args;
  const row = {
    chain,
    number,
    hash,
    final_number: number,
    due_at: dueAt,
    reached_head_at: null,
    owner: null,
    lease_until: null,
  };
  const inserted = await db
    .insertInto("chain_cursor")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .returning("chain")
    .executeTakeFirst();
  return inserted !== undefined;
}

/** Takes the watch over a chain; undefined while another process has it. */
export async function takeCursor(
  db: Db,
  args: { chain: string; owner: string; now: Date; until: Date },
): Promise<Cursor | undefined> {
  return db
    .updateTable("chain_cursor")
    .set({ owner: args.owner, lease_until: args.until, due_at: args.until })
    .where("chain", "=", args.chain)
    .where((eb) =>
      eb.or([eb("lease_until", "is", null), eb("lease_until", "<=", args.now), eb("owner", "=", args.owner)]),
    )
    .returning(["chain", "number", "hash", "final_number as finalNumber"])
    .executeTakeFirst();
}

/** Lets go of the watch; the due time stays, so that the sweep rings if nobody goes on. */
export async function releaseCursor(
  db: Db,
  args: { chain: string; owner: string; reachedHeadAt: Date | undefined },
): Promise<void> {
  await db
    .updateTable("chain_cursor")
    .set({ owner: null, lease_until: null, ...(args.reachedHeadAt ? { reached_head_at: args.reachedHeadAt } : {}) })
    .where("chain", "=", args.chain)
    .where("owner", "=", args.owner)
    .execute();
}

/** Moves the cursor to the next block. False when it does not stand on that block's parent any more. */
export async function advanceCursor(
  db: Db,
  args: { chain: string; from: { number: number; hash: string }; to: { number: number; hash: string }; until: Date },
): Promise<boolean> {
  const result = await db
    .updateTable("chain_cursor")
    .set({ number: args.to.number, hash: args.to.hash, lease_until: args.until, due_at: args.until })
    .where("chain", "=", args.chain)
    .where("number", "=", args.from.number)
    .where("hash", "=", args.from.hash)
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
