import { type Insertable, type Selectable, sql } from "kysely";
import { insertRows } from "../insert-rows.ts";
import type { Db, Tables } from "../tables.ts";
import type { SpentTransaction, TransactionKey } from "./transactions.ts";

// The first signature identifies a transaction on Solana. Only a payout has replacements: they have its durable nonce, of which the
// cluster includes one transaction.

type Row = Selectable<Tables["transaction"]>;

/**
 * A lane's signed transaction on Solana. `nonce` counts the transactions of the lane, and `hash` is the first signature.
 * `reverted` is true for one that failed, and null before it is included.
 * `unit_price` is the price of a compute unit, micro-lamports.
 */
export type SolanaTransactionRow = Pick<
  Row,
  "lane_id" | "nonce" | "replacement" | "hash" | "bytes" | "state" | "reverted"
> &
  Pick<Row, "created_at" | "broadcast_at" | "last_valid_height" | "signed_height"> &
  Pick<Row, "nonce_account" | "nonce_value" | "nonce_slot"> & {
    slot: number | null;
    compute_units: bigint;
    unit_price: bigint;
  };

/** Reserves transaction numbers of lanes, as many as `counts` has for each. Returns the first number of each lane by its id. */
export async function takeNumbers(db: Db, counts: ReadonlyMap<string, number>): Promise<Map<string, number>> {
  const first = new Map<string, number>();
  // Every caller uses the same order, which avoids deadlocks.
  for (const [id, count] of [...counts].sort()) {
    const row = await db
      .updateTable("lane")
      .set({ next_nonce: sql`next_nonce + ${count}` })
      .where("id", "=", id)
      .returning("next_nonce")
      .executeTakeFirstOrThrow();
    first.set(id, row.next_nonce - count);
  }
  return first;
}

/**
 * Stores signed transactions; only stored transactions are sent. Returns how many were stored: unique keys skip a
 * transaction that exists, and one whose nonce account another transaction uses, unless it replaces that one.
 */
export async function storeTransactions(db: Db, rows: readonly Insertable<Tables["transaction"]>[]): Promise<number> {
  const [first, ...others] = rows;
  if (!first) return 0;
  const stored =
    await sql`${insertRows("transaction", [first, ...others])} on conflict do nothing returning hash`.execute(db);
  return stored.rows.length;
}

/** Locks a transaction until the commit, so that it does not end. Returns false if it is included or has ended. */
export async function lockWaiting(db: Db, { lane_id, nonce, replacement }: TransactionKey): Promise<boolean> {
  const row = await db
    .selectFrom("transaction")
    .select("hash")
    .where("lane_id", "=", lane_id)
    .where("nonce", "=", nonce)
    .where("replacement", "=", replacement)
    .where("state", "in", ["signed", "broadcast", "accepted"])
    .forUpdate()
    .executeTakeFirst();
  return row !== undefined;
}

/** Stores the result of broadcasts, except for transactions that have reached a later state. */
export async function recordBroadcasts(
  db: Db,
  args: { chain: string; hashes: readonly string[]; state: "broadcast" | "accepted"; at: Date },
): Promise<void> {
  if (args.hashes.length === 0) return;
  await db
    .updateTable("transaction")
    .set({ state: args.state, broadcast_at: args.at })
    .where("chain", "=", args.chain)
    .where(sql<boolean>`hash = any(${args.hashes})`)
    .where("state", "in", ["signed", "broadcast", "accepted"])
    .execute();
}

/** Sets the height at which transactions were signed at the latest, except for those that have a lower one or have landed. */
export async function lowerSignedHeights(
  db: Db,
  { chain, hashes, height }: { chain: string; hashes: readonly string[]; height: number },
): Promise<void> {
  await db
    .updateTable("transaction")
    .set({ signed_height: height })
    .where("chain", "=", chain)
    .where(sql<boolean>`hash = any(${hashes})`)
    .where("state", "in", ["signed", "broadcast", "accepted"])
    .where(sql<boolean>`coalesce(signed_height > ${height}, true)`)
    .execute();
}

/**
 * Returns the transactions that may still land, those that are included in a slot up to `includedUpTo` and not final yet, those
 * that are included and have replacements, and, if `unconfirmed` is true, the other included ones that have a transfer which is not
 * confirmed.
 */
export async function listUnsettled(
  db: Db,
  args: { chain: string; includedUpTo: number; unconfirmed: boolean },
): Promise<SolanaTransactionRow[]> {
  return db
    .selectFrom("transaction")
    .select(["lane_id", "nonce", "replacement", "hash", "bytes", "state", "reverted", "created_at", "broadcast_at"])
    .select(["block_number as slot", "gas_limit as compute_units", "max_fee_per_gas as unit_price"])
    .select(["last_valid_height", "signed_height", "nonce_account", "nonce_value", "nonce_slot"])
    .where("chain", "=", args.chain)
    .where((eb) =>
      eb.or([
        eb("state", "in", ["signed", "broadcast", "accepted"]),
        eb("state", "=", "included").and("block_number", "<=", args.includedUpTo),
        eb("state", "=", "included").and("nonce_account", "is not", null).and(hasWaitingTwin),
        ...(args.unconfirmed ? [eb("state", "=", "included").and(hasIncludedTransfer)] : []),
      ]),
    )
    .orderBy("created_at")
    .execute();
}

/** SQL: another transaction with the same durable nonce may still land. */
const hasWaitingTwin = sql<boolean>`exists (
  select from transaction twin
  where twin.lane_id = transaction.lane_id and twin.nonce = transaction.nonce
    and twin.state in ('signed', 'broadcast', 'accepted'))`;

const hasIncludedTransfer = sql<boolean>`exists (
  select from transfer t
  where t.lane_id = transaction.lane_id and t.lane_nonce = transaction.nonce and t.state = 'included')`;

/** Returns those of these signatures that belong to our transactions, except expired ones. */
export async function listOwnHashes(db: Db, args: { chain: string; hashes: readonly string[] }): Promise<Set<string>> {
  if (args.hashes.length === 0) return new Set();
  const rows = await db
    .selectFrom("transaction")
    .select("hash")
    .where("chain", "=", args.chain)
    .where(sql<boolean>`hash = any(${args.hashes})`)
    .where("state", "<>", "expired")
    .execute();
  return new Set(rows.map(({ hash }) => hash));
}

/** Marks transactions as included in slots. A failed transaction has cost its fee too. */
export async function markLanded(
  db: Db,
  args: { chain: string; landings: readonly { hash: string; slot: number; fee: bigint; failed: boolean }[] },
): Promise<void> {
  if (args.landings.length === 0) return;
  const column = <K extends "hash" | "slot" | "fee" | "failed">(key: K) => args.landings.map((one) => one[key]);
  await sql`
    update transaction t
    set state = 'included', block_number = f.slot, block_id = f.slot::text, fee = f.fee, reverted = f.failed
    from unnest(${column("hash")}::text[], ${column("slot")}::bigint[], ${column("fee")}::numeric[],
      ${column("failed")}::boolean[]) as f (hash, slot, fee, failed)
    where t.chain = ${args.chain} and t.hash = f.hash and t.state in ('signed', 'broadcast', 'accepted')`.execute(db);
}

/** Marks transactions as no longer included after their slots were removed. The same bytes may land again. */
export async function revertLanded(db: Db, args: { chain: string; hashes: readonly string[] }): Promise<void> {
  await db
    .updateTable("transaction")
    .set({ state: "accepted", block_number: null, block_id: null, fee: null, reverted: null, broadcast_at: null })
    .where("chain", "=", args.chain)
    .where(sql<boolean>`hash = any(${args.hashes})`)
    .where("state", "=", "included")
    .execute();
}

/** Marks included transactions as final, and the others with their nonces as replaced. Returns the costs of the final ones. */
export async function finishByHash(
  db: Db,
  args: { chain: string; hashes: readonly string[] },
): Promise<SpentTransaction[]> {
  if (args.hashes.length === 0) return [];
  const { rows } = await sql<SpentTransaction>`
    with finished as (
      update transaction set state = 'final'
      where chain = ${args.chain} and hash = any(${args.hashes}) and state = 'included'
      returning lane_id, nonce, chain, hash, block_number, block_id, coalesce(fee, 0) as fee
    ), replaced as (
      update transaction t set state = 'replaced' from finished f
      where t.lane_id = f.lane_id and t.nonce = f.nonce and t.state in ('signed', 'broadcast', 'accepted')
    )
    select f.chain, l.address, f.hash, f.block_number, f.block_id, f.fee from finished f join lane l on l.id = f.lane_id
    order by f.block_number, f.hash`.execute(db);
  return rows;
}

/**
 * Marks transactions that can no longer land as expired. Returns those that were not in a later state. One with the durable nonce of
 * another transaction that may land or has landed stays: that one makes the same transfers.
 */
export async function expireTransactions(
  db: Db,
  args: { chain: string; hashes: readonly string[] },
): Promise<{ lane_id: string; nonce: number }[]> {
  if (args.hashes.length === 0) return [];
  return db
    .updateTable("transaction")
    .set({ state: "expired" })
    .where("chain", "=", args.chain)
    .where(sql<boolean>`hash = any(${args.hashes})`)
    .where("state", "in", ["signed", "broadcast", "accepted"])
    .where(
      sql<boolean>`not exists (
        select from transaction twin
        where twin.lane_id = transaction.lane_id and twin.nonce = transaction.nonce
          and (twin.state = 'included'
            or twin.state in ('signed', 'broadcast', 'accepted') and twin.hash <> all(${args.hashes})))`,
    )
    .returning(["lane_id", "nonce"])
    .execute();
}

/** Returns those of these durable nonce accounts that no live transaction uses. */
export async function keepFreeNonceAccounts(
  db: Db,
  args: { chain: string; accounts: readonly string[] },
): Promise<string[]> {
  const rows = await db
    .selectFrom("transaction")
    .select("nonce_account")
    .where("chain", "=", args.chain)
    .where("nonce_account", "is not", null)
    .where("state", "in", ["signed", "broadcast", "accepted", "included"])
    .execute();
  const taken = new Set(rows.map(({ nonce_account }) => nonce_account));
  return args.accounts.filter((account) => !taken.has(account));
}
