import { type RawBuilder, sql } from "kysely";
import type { Db } from "./tables.ts";

/** What an account of the ledger held of an asset; positive is debit, negative credit. */
export type Balance = { account: string; asset: string; amount: bigint };
/** Of one account or all, of one asset or all, at the end of a day (UTC, YYYY-MM-DD; today's end when unset). */
export type BalanceFilter = { account?: string | undefined; asset?: string | undefined; day?: string | undefined };

/**
 * Balances at the end of a day, from sums by day: what it takes depends on days, not on entries. Accounts that stand at
 * zero are left out.
 */
export async function listBalances(db: Db, filter: BalanceFilter = {}): Promise<Balance[]> {
  return (await selectBalances(filter).execute(db)).rows;
}

/** The query of it, for whoever wants to see its plan. */
export function selectBalances({ account, asset, day }: BalanceFilter): RawBuilder<Balance> {
  return sql<Balance>`
    select account, asset, sum(amount) as amount from ledger_day
    where true ${account === undefined ? sql`` : sql`and account = ${account}`}
      ${asset === undefined ? sql`` : sql`and asset = ${asset}`}
      ${day === undefined ? sql`` : sql`and day <= ${day}::date`}
    group by account, asset having sum(amount) <> 0 order by account, asset`;
}
