import { type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";

export type ReconciliationRow = Selectable<Tables["reconciliation"]>;

/** Returns the height up to which a chain has been read, and the height up to which it is final and booked. */
export async function findHeights(db: Db, chain: string): Promise<{ read: number; final: number } | undefined> {
  return db
    .selectFrom("chain_cursor")
    .select(["number as read", "final_number as final"])
    .where("chain", "=", chain)
    .executeTakeFirst();
}

/** Returns the addresses of a chain's lanes, including lanes that are no longer in the networks file. */
export async function listLaneAddresses(db: Db, chain: string): Promise<string[]> {
  const rows = await db.selectFrom("lane").select("address").where("chain", "=", chain).orderBy("address").execute();
  return rows.map(({ address }) => address);
}

/** A transaction of a lane that may be in a block that was not read: its fee may be spent and not recorded yet. */
export type UnfinishedTransaction = {
  address: string;
  nonce: number;
  bytes: Buffer;
  gasLimit: bigint;
  maxFeePerGas: bigint;
};

/** Returns the unfinished transactions of a chain's lanes. At most one with the same nonce can be included. */
export async function listUnfinished(db: Db, chain: string): Promise<UnfinishedTransaction[]> {
  return db
    .selectFrom("lane as l")
    .innerJoin("transaction as t", "t.lane_id", "l.id")
    .select(["l.address", "t.nonce", "t.bytes", "t.gas_limit as gasLimit", "t.max_fee_per_gas as maxFeePerGas"])
    .where("l.chain", "=", chain)
    .where("t.state", "in", ["signed", "broadcast", "accepted"])
    .execute();
}

/**
 * One part of an account's balance at a block, as the rows have it, in minor units:
 * - `booked`: the balance of the ledger.
 * - `moved`: observed movements of the treasury that are not booked yet, including the dust of a day that is not over and
 *   movements that could not be recorded. `asset` is null and `token` names the asset.
 * - `left`: outflows from the treasury that no transfer explains, or beyond the amount owed, and from lanes that no
 *   transaction explains, that no operator has resolved. They are booked as exceptions, and the money should still be there.
 * - `spent`: fees of a lane's transactions that are not final yet (negative).
 * - `given`: deposits to lanes that were found at later blocks, and that the lane may have had before.
 */
export type LedgerSide = {
  what: "booked" | "moved" | "left" | "spent" | "given";
  account: string;
  asset: string | null;
  token: string | null;
  amount: bigint;
};

/**
 * Returns the ledger at a block and everything in flight, in one statement and therefore as of one time. The ledger at a
 * block is today's balances minus the bookings of later blocks, so that the cost depends on the activity since that block.
 */
export async function readLedgerSides(
  db: Db,
  args: { chain: string; block: number; accounts: readonly string[]; treasury: string },
): Promise<LedgerSide[]> {
  const { chain, block, accounts, treasury } = args;
  const { rows } = await sql<LedgerSide>`
    select 'booked' as what, account, asset, null as token, sum(amount) as amount from (
      select account, asset, amount from ledger_day
      where account = any(${accounts}) and split_part(asset, '/', 1) = ${chain}
      union all
      select e.account, e.asset, -e.amount from ledger_group g join ledger_entry e on e.group_id = g.id
      where g.chain = ${chain} and g.block_number > ${block} and e.account = any(${accounts})
    ) balances group by account, asset
    union all
    select 'moved', 'treasury', null, token, sum(case when receiver = ${treasury} then amount else 0 end
      - case when payer = ${treasury} then amount else 0 end)
    from (
      select token, payer, receiver, amount from observation
      where chain = ${chain} and transfer_id is null and not orphaned and not booked and block_number <= ${block}
      union all
      select s.token, s.payer, s.receiver, t.amount
      from transfer t join observation s on s.transfer_id = t.id and not s.orphaned
      where t.chain = ${chain} and t.state = 'included' and s.block_number <= ${block}
      union all
      select s.token, s.payer, s.receiver, s.amount
      from dust d left join ledger_group g on g.id = d.group_id join observation s on s.dust_id = d.id
      where d.chain = ${chain} and s.block_number <= ${block} and (g.id is null or g.block_number > ${block})
      union all
      select movement ->> 'token', movement ->> 'payer', movement ->> 'receiver', (movement ->> 'amount')::numeric
      from failed_booking where chain = ${chain} and kind = 'movement' and block_number <= ${block}
    ) unbooked group by token
    union all
    select 'left', coalesce(l.account, 'treasury'), e.asset, null, sum(e.amount)
    from ledger_group g join ledger_entry e on e.group_id = g.id and e.account = 'exceptions' and e.amount > 0
    left join ledger_entry l on l.group_id = g.id and l.account like 'lane:%'
    where g.kind in ('unmatched', 'overpaid') and g.chain = ${chain} and g.block_number <= ${block}
      and not exists (select from ledger_group r where r.kind = 'exception_resolved' and r.subject = g.id::text)
    group by 2, e.asset
    union all
    select 'given', e.account, e.asset, null, sum(e.amount) from ledger_group g join ledger_entry e on e.group_id = g.id
    where g.kind = 'lane_deposit' and g.chain = ${chain} and g.block_number > ${block} and e.account = any(${accounts})
    group by e.account, e.asset
    union all
    select 'spent', 'lane:' || l.address, null, null, -sum(t.fee) from transaction t join lane l on l.id = t.lane_id
    where t.chain = ${chain} and t.state = 'included' and t.block_number <= ${block} group by l.address`.execute(db);
  return rows;
}

/** Locks the reconciliation of a chain until the end of the transaction. */
export async function lockReconciliation(db: Db, chain: string): Promise<void> {
  await sql`select lock_reconciliation(${chain})`.execute(db);
}

/** Stores the result of a reconciliation in place of the previous one. */
export async function keepReconciliation(db: Db, chain: string, rows: readonly ReconciliationRow[]): Promise<void> {
  await db.deleteFrom("reconciliation").where("chain", "=", chain).execute();
  if (rows.length > 0)
    await db
      .insertInto("reconciliation")
      .values([...rows])
      .execute();
}

/** Returns the newest reconciliation of every chain by asset: the sum of the absolute differences, and its time. */
export async function listDifferences(
  db: Db,
): Promise<{ chain: string; asset: string; difference: bigint; at: Date }[]> {
  const { rows } = await sql<{ chain: string; asset: string; difference: bigint; at: Date }>`
    select chain, asset, sum(abs(held - booked - in_flight)) as difference, min(at) as at
    from reconciliation group by chain, asset order by chain, asset`.execute(db);
  return rows;
}

/** Takes the chains that are due for a reconciliation. Each is returned to one caller, and is due again at `nextAt`. */
export async function takeDueReconciliations(
  db: Db,
  args: { chains: readonly string[]; now: Date; nextAt: Date },
): Promise<string[]> {
  const rows = await db
    .updateTable("chain_cursor")
    .set({ reconcile_at: args.nextAt })
    .where("reconcile_at", "<=", args.now)
    .where(sql<boolean>`chain = any(${args.chains})`)
    .returning("chain")
    .execute();
  return rows.map(({ chain }) => chain);
}
