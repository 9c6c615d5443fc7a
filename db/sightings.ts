import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Tables } from "./tables.ts";
import type { TransferRow } from "./transfers.ts";

/** Writes what was seen in a block; the same log seen again changes nothing. */
export async function insertSightings(db: Db, rows: readonly Insertable<Tables["sighting"]>[]): Promise<void> {
  if (rows.length === 0) return;
  await db
    .insertInto("sighting")
    .values([...rows])
    .onConflict((conflict) =>
      conflict
        .columns(["chain", "block_hash", "tx_hash", "log_index"])
        .doUpdateSet({ orphaned: false, transfer_id: sql`excluded.transfer_id` })
        // What is in the books as an exception stays there.
        .where("sighting.booked", "=", false),
    )
    .execute();
}

/** Blocks above a height are gone, and what was seen in them with them. Gives the transfers that were proved there. */
export async function orphanSightings(db: Db, args: { chain: string; above: number }): Promise<string[]> {
  const rows = await db
    .updateTable("sighting")
    .set({ orphaned: true })
    .where("chain", "=", args.chain)
    .where("block_number", ">", args.above)
    .where("orphaned", "=", false)
    .returning("transfer_id")
    .execute();
  return rows.flatMap((row) => row.transfer_id ?? []);
}

/** What proved these transfers is gone from the chain. */
export async function orphanProofs(db: Db, transferIds: readonly string[]): Promise<void> {
  await db
    .updateTable("sighting")
    .set({ orphaned: true })
    .where(sql<boolean>`transfer_id = any(${transferIds})`)
    .where("orphaned", "=", false)
    .execute();
}

/** Which of these transfers are proved by a movement that stands. */
export async function listClaimed(db: Db, transferIds: readonly string[]): Promise<Set<string>> {
  if (transferIds.length === 0) return new Set();
  const rows = await db
    .selectFrom("sighting")
    .select("transfer_id")
    .where(sql<boolean>`transfer_id = any(${transferIds})`)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.flatMap((row) => row.transfer_id ?? []));
}

/** What a movement has to be like to be a certain transfer's. */
type Movement = Pick<TransferRow, "chain" | "token" | "payer" | "receiver" | "amount" | "authorization_nonce">;

/** True when exactly this movement stands on the chain as we have read it. */
export async function isSighted(db: Db, movement: Movement): Promise<boolean> {
  const row = await db
    .selectFrom("sighting")
    .select("log_index")
    .where("chain", "=", movement.chain)
    .where("authorization_nonce", "=", movement.authorization_nonce)
    .where("token", "=", movement.token)
    .where("payer", "=", movement.payer)
    .where("receiver", "=", movement.receiver)
    .where("amount", "=", movement.amount)
    .where("orphaned", "=", false)
    .executeTakeFirst();
  return row !== undefined;
}

/** Which of these logs are on record as standing. */
export async function listKnownLogs(
  db: Db,
  args: { chain: string; logs: readonly { blockHash: string; logIndex: number }[] },
): Promise<Set<string>> {
  if (args.logs.length === 0) return new Set();
  const rows = await db
    .selectFrom("sighting")
    .select(["block_hash", "log_index"])
    .where("chain", "=", args.chain)
    .where(sql<boolean>`block_hash = any(${args.logs.map((log) => log.blockHash)})`)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.map((row) => `${row.block_hash} ${row.log_index}`));
}

/**
 * Gives a transfer the sighting of its movement that somebody else has caused: one that was written before the
 * transfer was, or while a lane was taking it. True when there is one.
 */
export async function claimSighting(db: Db, transfer: TransferRow): Promise<boolean> {
  const result = await db
    .updateTable("sighting")
    .set({ transfer_id: transfer.id })
    .where("chain", "=", transfer.chain)
    .where("authorization_nonce", "=", transfer.authorization_nonce)
    .where("token", "=", transfer.token)
    .where("payer", "=", transfer.payer)
    .where("receiver", "=", transfer.receiver)
    .where("amount", "=", transfer.amount)
    .where((eb) => eb.or([eb("transfer_id", "is", null), eb("transfer_id", "=", transfer.id)]))
    .where("orphaned", "=", false)
    .where("booked", "=", false)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

export type StraySighting = Selectable<Tables["sighting"]>;

/**
 * Movements at or below a height that belong to no transfer and are in no books yet, oldest first; marked as booked,
 * so the caller books them in the same transaction.
 */
export async function takeStray(
  db: Db,
  args: { chain: string; upTo: number; limit: number },
): Promise<StraySighting[]> {
  const { rows } = await sql<StraySighting>`
    update sighting set booked = true where (chain, block_hash, tx_hash, log_index) in (
      select chain, block_hash, tx_hash, log_index from sighting
      where chain = ${args.chain} and transfer_id is null and not orphaned and not booked and block_number <= ${args.upTo}
      order by block_number, log_index limit ${args.limit}
    )
    returning *`.execute(db);
  return rows;
}

/** Which of these movements are on record as standing, each by its block, transaction and place there. */
export async function listKnownMovements(
  db: Db,
  chain: string,
  movements: readonly { blockHash: string; txHash: string; logIndex: number }[],
): Promise<Set<string>> {
  if (movements.length === 0) return new Set();
  const rows = await db
    .selectFrom("sighting")
    .select(["block_hash", "tx_hash", "log_index"])
    .where("chain", "=", chain)
    .where(sql<boolean>`block_hash = any(${movements.map(({ blockHash }) => blockHash)})`)
    .where(sql<boolean>`tx_hash = any(${movements.map(({ txHash }) => txHash)})`)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.map((row) => `${row.block_hash} ${row.tx_hash} ${row.log_index}`));
}
