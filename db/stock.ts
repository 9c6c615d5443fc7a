import { sql } from "kysely";
import type { Db } from "./tables.ts";

/**
 * What the treasury has of an asset beyond what it owes in it, minor units; negative when it is short of it. Payouts of
 * money that came in another asset, and that have not begun, are not counted as owed: they are what this pays for.
 * Whoever asks is the only one for that asset until the end of the transaction.
 */
export async function readStock(db: Db, asset: string): Promise<bigint> {
  await sql`select pg_advisory_xact_lock(hashtext(${`stock ${asset}`}))`.execute(db);
  const { rows } = await sql<{ stock: bigint }>`
    select coalesce((select sum(amount) from ledger_day where account = 'treasury' and asset = ${asset}), 0)
      + least(0, coalesce((select sum(amount) from ledger_day where account = 'in_transit' and asset = ${asset}), 0))
      + least(0, coalesce((select sum(amount) from ledger_day where account = 'exceptions' and asset = ${asset}), 0))
      - coalesce((select sum(amount) from merchant_balance where asset = ${asset}), 0)
      + coalesce((select sum(amount) from settlement
          where asset = ${asset} and converted and state in ('due', 'gathering')), 0) as stock`.execute(db);
  return rows[0]?.stock ?? 0n;
}
