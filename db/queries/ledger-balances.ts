import { type RawBuilder, sql } from "kysely";
import type { Db } from "../tables.ts";

/** The balance of a ledger account in one asset: positive is debit, negative is credit. */
export type Balance = { account: string; asset: string; amount: bigint };
/** Selects balances by account and asset, at the end of a day (UTC, YYYY-MM-DD). An unset member does not narrow. */
export type BalanceFilter = { account?: string | undefined; asset?: string | undefined; day?: string | undefined };

/**
 * Returns the balances at the end of a day, without those that are zero. Adds up the sums by day, so that the cost depends
 * on the number of days and not on the number of entries.
 */
export async function listBalances(db: Db, filter: BalanceFilter = {}): Promise<Balance[]> {
  return (await selectBalances(filter).execute(db)).rows;
}

/** Builds the query of `listBalances`. Exported for a test of its query plan. */
export function selectBalances({ account, asset, day }: BalanceFilter): RawBuilder<Balance> {
  return sql<Balance>`
    select account, asset, sum(amount) as amount from ledger_day
    where true ${account === undefined ? sql`` : sql`and account = ${account}`}
      ${asset === undefined ? sql`` : sql`and asset = ${asset}`}
      ${day === undefined ? sql`` : sql`and day <= ${day}::date`}
    group by account, asset having sum(amount) <> 0 order by account, asset`;
}
