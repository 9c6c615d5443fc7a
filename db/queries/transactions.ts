import type { Insertable, Selectable } from "kysely";
import { sql } from "kysely";
import { readHex } from "../../runtime/hex.ts";
import { transactionColumns } from "../columns.ts";
import type { TransactionState } from "../states.ts";
import type { Db, Tables } from "../tables.ts";
import { isBookable } from "./failed-bookings.ts";

type Row = Selectable<Tables["transaction"]>;
/** A lane's signed transaction on an EVM chain. */
export type EvmTransactionRow = Row & { hash: `0x${string}` };
function readEvmTransaction(row: Row): EvmTransactionRow {
  return { ...row, hash: readHex(row.hash) };
}

/** The key of a signed transaction: the lane's nonce, and the number of the replacement with this nonce. */
export type TransactionKey = Pick<Row, "lane_id" | "nonce" | "replacement">;

/** Stores a signed transaction. Only stored transactions are sent. */
export async function insertTransaction(db: Db, row: Insertable<Tables["transaction"]>): Promise<void> {
  await db.insertInto("transaction").values(row).execute();
}

/** Stores the result of a broadcast, unless the transaction has reached a later state. */
export async function recordBroadcast(
  db: Db,
  key: TransactionKey,
  args: { state: "broadcast" | "accepted"; at: Date },
): Promise<void> {
  await db
    .updateTable("transaction")
    .set({ state: args.state, broadcast_at: args.at })
    .where("lane_id", "=", key.lane_id)
    .where("nonce", "=", key.nonce)
    .where("replacement", "=", key.replacement)
    .where("state", "in", ["signed", "broadcast", "accepted"])
    .execute();
}

/**
 * States in which a transaction may be found in a block. A replaced one may too, when its lane's next nonce was lowered
 * (transfers/evm/lane-nonce.ts).
 */
const mayLand = ["signed", "broadcast", "accepted", "replaced"] as const satisfies TransactionState[];

/** Returns our transactions among a block's hashes that are not marked as included yet. */
export async function listByHashes(
  db: Db,
  args: { chain: string; hashes: readonly string[] },
): Promise<EvmTransactionRow[]> {
  if (args.hashes.length === 0) return [];
  const rows = await db
    .selectFrom("transaction")
    .select(transactionColumns)
    .where("chain", "=", args.chain)
    .where(sql<boolean>`hash = any(${args.hashes})`)
    .where("state", "in", mayLand)
    .execute();
  return rows.map(readEvmTransaction);
}

/** Returns every transaction that may still land, including replacements. The lanes' windows limit their number. */
export async function listInFlight(db: Db, chain: string): Promise<EvmTransactionRow[]> {
  const rows = await db
    .selectFrom("transaction")
    .select(transactionColumns)
    .where("chain", "=", chain)
    .where(sql<boolean>`state in ('signed', 'broadcast', 'accepted')`)
    .execute();
  return rows.map(readEvmTransaction);
}

/** Returns all transactions that were signed for one nonce. */
export async function listByNonce(db: Db, key: { lane_id: string; nonce: number }): Promise<EvmTransactionRow[]> {
  const rows = await db
    .selectFrom("transaction")
    .select(transactionColumns)
    .where("lane_id", "=", key.lane_id)
    .where("nonce", "=", key.nonce)
    .orderBy("replacement")
    .execute();
  return rows.map(readEvmTransaction);
}

/**
 * SQL: no transaction with this nonce is in a block that is not final. When one is final, the others are replaced, or were
 * stored after that and must be listed, so that they are marked as replaced too.
 */
const nowhereIncluded = sql<boolean>`not exists (
  select from transaction twin
  where twin.lane_id = transaction.lane_id and twin.nonce = transaction.nonce and twin.state = 'included')`;

/** Returns the newest unfinished transaction of each nonce of which none is included, lowest nonce first. */
export async function listUnincluded(db: Db, args: { chain: string; limit: number }): Promise<EvmTransactionRow[]> {
  const rows = await db
    .selectFrom("transaction")
    .select(transactionColumns)
    .distinctOn(["lane_id", "nonce"])
    .where("chain", "=", args.chain)
    .where("state", "in", ["signed", "broadcast", "accepted"])
    .where(nowhereIncluded)
    .orderBy("lane_id")
    .orderBy("nonce")
    .orderBy("replacement", "desc")
    .limit(args.limit)
    .execute();
  return rows.map(readEvmTransaction);
}

/** Returns the highest nonce of a lane that an included transaction of ours has used. Undefined when there is none. */
export async function findHighestLanded(db: Db, laneId: string): Promise<number | undefined> {
  const row = await db
    .selectFrom("transaction")
    .select("nonce")
    .where("lane_id", "=", laneId)
    .where("state", "in", ["included", "final"])
    .orderBy("nonce", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.nonce;
}

/** The receipt of a transaction. */
type Landing = TransactionKey & {
  blockNumber: number;
  blockHash: string;
  gasUsed: bigint;
  gasPrice: bigint;
  fee: bigint;
  reverted: boolean;
};

/** Marks transactions as included in blocks. */
export async function markIncluded(db: Db, landings: readonly Landing[]): Promise<void> {
  if (landings.length === 0) return;
  const column = <K extends keyof Landing>(key: K) => landings.map((landing) => landing[key]);
  await sql`
    update transaction t
    set state = 'included', block_number = f.block_number, block_id = f.block_id,
      gas_used = f.gas_used, gas_price = f.gas_price, fee = f.fee, reverted = f.reverted
    from unnest(
      ${column("lane_id")}::text[], ${column("nonce")}::bigint[], ${column("replacement")}::integer[],
      ${column("blockNumber")}::bigint[], ${column("blockHash")}::text[],
      ${column("gasUsed")}::numeric[], ${column("gasPrice")}::numeric[], ${column("fee")}::numeric[],
      ${column("reverted")}::boolean[]
    ) as f (lane_id, nonce, replacement, block_number, block_id, gas_used, gas_price, fee, reverted)
    where t.lane_id = f.lane_id and t.nonce = f.nonce and t.replacement = f.replacement
      and t.state = any(${mayLand})`.execute(db);
}

/**
 * Marks transactions of blocks above a height, which a reorg removed, as no longer included. They are broadcast again, even
 * if they were final, and transactions that they had replaced may land instead.
 */
export async function revertIncluded(db: Db, args: { chain: string; above: number }): Promise<void> {
  await sql`
    with lost as (
      update transaction set state = 'accepted', block_number = null, block_id = null, gas_used = null,
        gas_price = null, fee = null, reverted = null, broadcast_at = null
      where chain = ${args.chain} and state in ('included', 'final') and block_number > ${args.above}
      returning lane_id, nonce
    )
    update transaction t set state = 'accepted', broadcast_at = null from lost
    where t.lane_id = lost.lane_id and t.nonce = lost.nonce and t.state = 'replaced'`.execute(db);
}

/** A final transaction: its cost, its lane, and its block. */
export type SpentTransaction = {
  chain: string;
  /** The lane's account. */
  address: string;
  hash: string;
  block_number: number;
  block_id: string;
  fee: bigint;
};

/** Returns the hashes of transactions in blocks up to a height that are not marked as final, oldest first. */
export async function listFinishable(db: Db, args: { chain: string; upTo: number; limit: number }): Promise<string[]> {
  const rows = await db
    .selectFrom("transaction")
    .select("hash")
    .where("chain", "=", args.chain)
    .where("state", "=", "included")
    .where("block_number", "<=", args.upTo)
    .where(isBookable("transaction", { chain: "transaction.chain", subject: sql.ref("transaction.hash") }))
    .orderBy("block_number")
    .orderBy("hash")
    .limit(args.limit)
    .execute();
  return rows.map(({ hash }) => hash);
}

/**
 * Marks those of these transactions that are in blocks up to a height as final, and the other transactions with the same
 * nonces as replaced. Returns those that have become final.
 */
export async function finishTransactions(
  db: Db,
  args: { chain: string; upTo: number; hashes: readonly string[] },
): Promise<SpentTransaction[]> {
  const { rows } = await sql<SpentTransaction>`
    with finished as (
      update transaction set state = 'final'
      where chain = ${args.chain} and hash = any(${args.hashes}) and state = 'included' and block_number <= ${args.upTo}
      returning lane_id, nonce, chain, hash, block_number, block_id, coalesce(fee, gas_used * gas_price, 0) as fee
    ), replaced as (
      update transaction t set state = 'replaced' from finished f
      where t.lane_id = f.lane_id and t.nonce = f.nonce and t.state in ('signed', 'broadcast', 'accepted')
    )
    select f.chain, l.address, f.hash, f.block_number, f.block_id, f.fee from finished f join lane l on l.id = f.lane_id
    order by f.block_number, f.hash`.execute(db);
  return rows;
}

/** Marks the unfinished transactions of a nonce as replaced, because no block can include them. */
export async function markReplaced(db: Db, key: { lane_id: string; nonce: number }): Promise<void> {
  const unfinished: TransactionState[] = ["signed", "broadcast", "accepted"];
  await db
    .updateTable("transaction")
    .set({ state: "replaced" })
    .where("lane_id", "=", key.lane_id)
    .where("nonce", "=", key.nonce)
    .where("state", "in", unfinished)
    .execute();
}
