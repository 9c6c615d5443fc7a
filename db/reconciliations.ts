import { type Selectable, sql } from "kysely";
import type { Db, Tables } from "./tables.ts";

export type ReconciliationRow = Selectable<Tables["reconciliation"]>;

/** How far a chain has been read, and booked. */
export async function findHeights(db: Db, chain: string): Promise<{ read: number; final: number } | undefined> {
  return db
    .selectFrom("chain_cursor")
    .select(["number as read", "final_number as final"])
    .where("chain", "=", chain)
    .executeTakeFirst();
}

/** Addresses of a chain's lanes, also of those that have left the networks file. */
export async function listLaneAddresses(db: Db, chain: string): Promise<string[]> {
  const rows = await db.selectFrom("lane").select("address").where("chain", "=", chain).orderBy("address").execute();
  return rows.map(({ address }) => address);
}

/**
 * What the rows say of accounts at a block, minor units. `booked`: by the ledger. `moved`: tokens of the treasury that
 * were seen to move and are in no books yet, small deposits of a day that is not over and movements that could not be
 * written down among them (`asset` is null, `token` names it). `left`: what went out of the treasury without us, or beyond
 * what was owed, and nobody has said why: it is booked as an exception, and should be there. `spent`: fees of a lane's transactions
 * that are not final yet (negative). `given`: what lanes were found to have been given at later blocks, and may have had
 * before.
 */
export type BookSide = {
  what: "booked" | "moved" | "left" | "spent" | "given";
  account: string;
  asset: string | null;
  token: string | null;
  amount: bigint;
};

/**
 * The books as they stood at a block, and what is in flight, in one statement: at one moment. The books at a block are
 * today's balances less what was booked for later blocks, so that it costs what has happened since, not what ever did.
 */
export async function readBookSides(
  db: Db,
  args: { chain: string; block: number; accounts: readonly string[]; treasury: string },
): Promise<BookSide[]> {
  const { chain, block, accounts, treasury } = args;
  const { rows } = await sql<BookSide>`
    select 'booked' as what, account, asset, null as token, sum(amount) as amount from (
      select account, asset, amount from ledger_day
      where account = any(${accounts}) and split_part(asset, '/', 1) = ${chain}
      union all
      select e.account, e.asset, -e.amount from ledger_group g join ledger_entry e on e.group_id = g.id
      where g.chain = ${chain} and g.block_number > ${block} and e.account = any(${accounts})
    ) both_ways group by account, asset
    union all
    select 'moved', 'treasury', null, token, sum(case when receiver = ${treasury} then amount else 0 end
      - case when payer = ${treasury} then amount else 0 end)
    from (
      select token, payer, receiver, amount from sighting
      where chain = ${chain} and transfer_id is null and not orphaned and not booked and block_number <= ${block}
      union all
      select s.token, s.payer, s.receiver, t.amount
      from transfer t join sighting s on s.transfer_id = t.id and not s.orphaned
      where t.chain = ${chain} and t.state = 'included' and s.block_number <= ${block}
      union all
      select s.token, s.payer, s.receiver, s.amount
      from dust d left join ledger_group g on g.id = d.group_id join sighting s on s.dust_id = d.id
      where d.chain = ${chain} and s.block_number <= ${block} and (g.id is null or g.block_number > ${block})
      union all
      select movement ->> 'token', movement ->> 'payer', movement ->> 'receiver', (movement ->> 'amount')::numeric
      from failed_booking where chain = ${chain} and kind = 'movement' and block_number <= ${block}
    ) unbooked group by token
    union all
    select 'left', 'treasury', e.asset, null, sum(e.amount)
    from ledger_group g join ledger_entry e on e.group_id = g.id and e.account = 'exceptions' and e.amount > 0
    where g.kind in ('stray', 'overpaid') and g.chain = ${chain} and g.block_number <= ${block}
      and not exists (select from ledger_group r where r.kind = 'exception_resolved' and r.subject = g.id::text)
    group by e.asset
    union all
    select 'given', e.account, e.asset, null, sum(e.amount) from ledger_group g join ledger_entry e on e.group_id = g.id
    where g.kind = 'lane_deposit' and g.chain = ${chain} and g.block_number > ${block} and e.account = any(${accounts})
    group by e.account, e.asset
    union all
    select 'spent', 'lane:' || l.address, null, null, -sum(t.fee) from transaction t join lane l on l.id = t.lane_id
    where t.chain = ${chain} and t.state = 'included' and t.block_number <= ${block} group by l.address`.execute(db);
  return rows;
}

/** One at a time for a chain, until the end of the transaction. */
export async function lockReconciliation(db: Db, chain: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext(${`reconcile ${chain}`}))`.execute(db);
}

/** Keeps what a comparison came to, in place of the one before. */
export async function keepReconciliation(db: Db, chain: string, rows: readonly ReconciliationRow[]): Promise<void> {
  await db.deleteFrom("reconciliation").where("chain", "=", chain).execute();
  if (rows.length > 0)
    await db
      .insertInto("reconciliation")
      .values([...rows])
      .execute();
}

/** The newest comparison of every chain, by asset: the sizes of its differences added up, and when it was made. */
export async function listDifferences(
  db: Db,
): Promise<{ chain: string; asset: string; difference: bigint; at: Date }[]> {
  const { rows } = await sql<{ chain: string; asset: string; difference: bigint; at: Date }>`
    select chain, asset, sum(abs(held - booked - in_flight)) as difference, min(at) as at
    from reconciliation group by chain, asset order by chain, asset`.execute(db);
  return rows;
}

/** Chains whose books are to be compared now; each is handed out once until the next time. */
export async function takeDueReconciliations(
  db: Db,
  args: { chains: readonly string[]; now: Date; againAt: Date },
): Promise<string[]> {
  const rows = await db
    .updateTable("chain_cursor")
    .set({ reconcile_at: args.againAt })
    .where("reconcile_at", "<=", args.now)
    .where(sql<boolean>`chain = any(${args.chains})`)
    .returning("chain")
    .execute();
  return rows.map(({ chain }) => chain);
}
