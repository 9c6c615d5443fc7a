import { sql } from "kysely";

/** SQL: `in_transit`, the sum of a merchant's payouts that have begun and are not final, of a row `b` of `merchant_balance`. */
export const sumInTransit = sql`select coalesce(sum(amount), 0) as in_transit from settlement
  where merchant_id = b.merchant_id and asset = b.asset and state = 'paying'`;
