import { type Insertable, type Selectable, sql } from "kysely";
import { groupByColumns, insertRows } from "../insert-rows.ts";
import type { Db, Tables } from "../tables.ts";
import type { TransferRow } from "./transfers.ts";

/**
 * Inserts the movements that were observed in a block. A log that is observed twice is stored once. Returns the ids of the
 * transfers to which the movements belong now.
 */
export async function insertObservations(
  db: Db,
  rows: readonly Insertable<Tables["observation"]>[],
): Promise<Set<string>> {
  const assigned = new Set<string>();
  // An observation that is not orphaned keeps its transfer, because the second writer may have found none. A movement that
  // is booked as an exception stays booked, and belongs to no transfer.
  for (const group of groupByColumns(rows)) {
    const stored = await sql<{ transfer_id: string | null }>`${insertRows("observation", group)}
      on conflict (chain, block_id, tx_hash, log_index) do update set
        orphaned = false,
        recorded_late = excluded.recorded_late and (observation.recorded_late or observation.orphaned),
        transfer_id = case when observation.booked then null when observation.orphaned then excluded.transfer_id
          else coalesce(observation.transfer_id, excluded.transfer_id) end
      returning transfer_id`.execute(db);
    for (const { transfer_id: id } of stored.rows) if (id !== null) assigned.add(id);
  }
  return assigned;
}

/** Marks the observations of blocks above a height as orphaned. Returns the transfers that they proved. */
export async function orphanObservations(db: Db, args: { chain: string; above: number }): Promise<string[]> {
  const rows = await db
    .updateTable("observation")
    .set({ orphaned: true })
    .where("chain", "=", args.chain)
    .where("block_number", ">", args.above)
    .where("orphaned", "=", false)
    .returning("transfer_id")
    .execute();
  return rows.flatMap((row) => row.transfer_id ?? []);
}

/** Marks the observations of transactions in these blocks as orphaned. Returns the transfers that they proved. */
export async function orphanTransactions(
  db: Db,
  args: { chain: string; txHashes: readonly string[]; blocks: readonly number[] },
): Promise<Set<string>> {
  const rows = await db
    .updateTable("observation")
    .set({ orphaned: true })
    .where("chain", "=", args.chain)
    .where(sql<boolean>`block_number = any(${args.blocks}::bigint[])`)
    .where(sql<boolean>`tx_hash = any(${args.txHashes})`)
    .where("orphaned", "=", false)
    .returning("transfer_id")
    .execute();
  return new Set(rows.flatMap((row) => row.transfer_id ?? []));
}

/** Marks a movement that is not booked as orphaned. Returns the transfer that it proved, if any. */
export async function orphanMovement(
  db: Db,
  { chain, block_id, tx_hash, log_index }: Pick<ObservationRow, "chain" | "block_id" | "tx_hash" | "log_index">,
): Promise<string | null> {
  const row = await db
    .updateTable("observation")
    .set({ orphaned: true })
    .where("chain", "=", chain)
    .where("block_id", "=", block_id)
    .where("tx_hash", "=", tx_hash)
    .where("log_index", "=", log_index)
    .where("orphaned", "=", false)
    .where("booked", "=", false)
    .returning("transfer_id")
    .executeTakeFirst();
  return row?.transfer_id ?? null;
}

/** Returns those of these transfers that an observation on the current chain proves. */
export async function listClaimed(db: Db, transferIds: readonly string[]): Promise<Set<string>> {
  if (transferIds.length === 0) return new Set();
  const rows = await db
    .selectFrom("observation")
    .select("transfer_id")
    .where(sql<boolean>`transfer_id = any(${transferIds})`)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.flatMap((row) => row.transfer_id ?? []));
}

/** The properties of a transfer that its movement must have. */
type Movement = {
  chain: string;
  token: string;
  payer: string;
  receiver: string;
  amount: bigint;
  authorization_nonce: string;
};

/** SQL: the movement is not orphaned and has these properties. */
const isMovement = (movement: Movement) => sql<boolean>`
  chain = ${movement.chain} and authorization_nonce = ${movement.authorization_nonce} and token = ${movement.token}
  and payer = ${movement.payer} and receiver = ${movement.receiver} and amount = ${movement.amount} and not orphaned`;

/** Returns true when exactly this movement has been observed, and is neither orphaned nor booked as an exception. */
export async function isObserved(db: Db, movement: Movement): Promise<boolean> {
  const row = await db
    .selectFrom("observation")
    .select("log_index")
    .where(isMovement(movement))
    .where(sql<boolean>`not booked`)
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns those of these logs that have been observed and are not orphaned, as `<block id> <log index>`. */
export async function listKnownLogs(
  db: Db,
  args: { chain: string; logs: readonly { blockId: string; logIndex: number }[] },
): Promise<Set<string>> {
  if (args.logs.length === 0) return new Set();
  const rows = await db
    .selectFrom("observation")
    .select(["block_id", "log_index"])
    .where("chain", "=", args.chain)
    .where(sql<boolean>`block_id = any(${args.logs.map((log) => log.blockId)})`)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.map((row) => `${row.block_id} ${row.log_index}`));
}

/**
 * Assigns to a transfer the observation of its movement when another sender caused that movement: before the transfer was
 * inserted, or while a lane was taking it. Returns true when there is such an observation.
 */
export async function claimObservation(db: Db, transfer: TransferRow): Promise<boolean> {
  const result = await db
    .updateTable("observation")
    .set({ transfer_id: transfer.id })
    .where(isMovement(transfer))
    .where((eb) => eb.or([eb("transfer_id", "is", null), eb("transfer_id", "=", transfer.id)]))
    .where("booked", "=", false)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

export type ObservationRow = Selectable<Tables["observation"]>;

/** Returns those of these movements that have been observed and are not orphaned, as `<block id> <transaction> <index>`. */
export async function listKnownMovements(
  db: Db,
  chain: string,
  movements: readonly { blockId: string; txHash: string; logIndex: number }[],
): Promise<Set<string>> {
  if (movements.length === 0) return new Set();
  const rows = await db
    .selectFrom("observation")
    .select(["block_id", "tx_hash", "log_index"])
    .where("chain", "=", chain)
    .where(sql<boolean>`block_id = any(${movements.map(({ blockId }) => blockId)})`)
    .where(sql<boolean>`tx_hash = any(${movements.map(({ txHash }) => txHash)})`)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.map((row) => `${row.block_id} ${row.tx_hash} ${row.log_index}`));
}

/** Returns those of these transactions whose movements have been observed in their slots and are not orphaned. */
export async function listObservedHashes(
  db: Db,
  args: { chain: string; all: readonly { signature: string; slot: number }[] },
): Promise<Set<string>> {
  if (args.all.length === 0) return new Set();
  const rows = await db
    .selectFrom("observation")
    .select("tx_hash")
    .where("chain", "=", args.chain)
    .where(sql<boolean>`block_id = any(${args.all.map(({ slot }) => String(slot))})`)
    .where(sql<boolean>`tx_hash = any(${args.all.map(({ signature }) => signature)})`)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.map(({ tx_hash }) => tx_hash));
}
