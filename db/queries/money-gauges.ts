import { sql } from "kysely";
import type { Db } from "../tables.ts";
import type { Balance } from "./ledger-balances.ts";

/** The bookings of exceptions: the kinds of ledger groups that wait for an operator's decision. */
export const exceptionBookings = ["unmatched", "exception", "overpaid", "dust"] as const;
/** The states of a refund before it has succeeded or failed. */
export const openRefundStates = ["due", "held", "paying"] as const;

/**
 * Returns the balances of these accounts by asset, and under the account `payable` what is owed to all merchants together.
 * Debits are positive. Does not read the merchants' accounts, which are many.
 */
export async function listAccountTotals(db: Db, accounts: readonly string[]): Promise<Balance[]> {
  const { rows } = await sql<Balance>`
    select account, asset, sum(amount) as amount from ledger_day
    where account = any(${accounts}::text[]) group by account, asset
    union all select 'payable', asset, -sum(amount) from merchant_balance group by asset`.execute(db);
  return rows;
}

/** Returns the number of open exceptions by their booking, without bookings that have none. */
export async function countOpenExceptions(db: Db): Promise<{ booking: string; count: number }[]> {
  const { rows } = await sql<{ booking: string; count: number }>`
    select g.kind as booking, count(*)::int as count from ledger_group g
    where g.kind in ('unmatched', 'exception', 'overpaid', 'dust')
      and not exists (select from ledger_group r where r.kind = 'exception_resolved' and r.subject = g.id::text)
    group by g.kind`.execute(db);
  return rows;
}

/** Returns the number of unfinished refunds by state, without states that have none. */
export async function countOpenRefunds(db: Db): Promise<{ state: string; count: number }[]> {
  return await db
    .selectFrom("refund")
    .select(["state", (select) => select.cast<number>(select.fn.countAll(), "integer").as("count")])
    .where("state", "in", openRefundStates)
    .groupBy("state")
    .execute();
}

/**
 * Returns the number of payments by chain that were accepted before a time of the chain and have not ended. `others` is the time of
 * all chains that are not given.
 */
export async function countUnfinishedPayments(
  db: Db,
  { acceptedBefore, others }: { acceptedBefore: readonly { chain: string; at: Date }[]; others: Date },
): Promise<{ chain: string; count: number }[]> {
  const chains = acceptedBefore.map(({ chain }) => chain);
  const times = acceptedBefore.map(({ at }) => at);
  const { rows } = await sql<{ chain: string; count: number }>`
    select t.chain, count(*)::int as count from transfer t
    left join unnest(${chains}::text[], ${times}::timestamptz[]) as c (chain, at) on c.chain = t.chain
    where t.state not in ('confirmed', 'ended') and t.purpose = 'payment' and t.created_at < coalesce(c.at, ${others})
    group by t.chain`.execute(db);
  return rows;
}

/** Returns when the oldest payment was accepted whose money is neither confirmed nor given up; null when there is none. */
export async function findOldestUnfinishedPayment(db: Db): Promise<Date | null> {
  const { rows } = await sql<{ at: Date | null }>`
    select min(created_at) as at from transfer
    where state not in ('confirmed', 'ended') and purpose = 'payment'`.execute(db);
  return rows[0]?.at ?? null;
}
