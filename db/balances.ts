import { sql } from "kysely";
import type { Db } from "./tables.ts";

/** What an account of the ledger held of an asset; positive is debit, negative credit. */
export type Balance = { account: string; asset: string; amount: bigint };

/**
 * Balances at the end of a day (UTC, YYYY-MM-DD; today's end when unset), from sums by day: what it takes depends on days,
 * not on entries. Of one account or all, of one asset or all; accounts that stand at zero are left out.
 */
export async function listBalances(
  db: Db,
  args: { account?: string | undefined; asset?: string | undefined; day?: string | undefined } = {},
): Promise<Balance[]> {
  const { account, asset, day } = args;
  const { rows } = await sql<Balance>`
    select account, asset, sum(amount) as amount from ledger_day
    where true ${account === undefined ? sql`` : sql`and account = ${account}`}
      ${asset === undefined ? sql`` : sql`and asset = ${asset}`}
      ${day === undefined ? sql`` : sql`and day <= ${day}::date`}
    group by account, asset having sum(amount) <> 0 order by account, asset`.execute(db);
  return rows;
}
