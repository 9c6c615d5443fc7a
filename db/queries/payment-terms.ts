import { sql } from "kysely";
import { batchStatements } from "../batch-calls.ts";
import { paymentColumns } from "../columns.ts";
import type { Db } from "../tables.ts";
import type { PaymentWithMerchant } from "./payments.ts";

type Asked = { paymentId: string; requester: string | null };
type Destination = PaidAsset & { destination: string; direct: boolean };
/** `minimum` is text, because JSON has no exact numbers. */
type Policy = { asset: string | null; unit: string | null; minimum: string | null };

/** A payment with the assets that its merchant is paid in. */
export type PaymentWithPaidAssets = PaymentWithMerchant & { destinations: PaidAsset[] };
/**
 * A payment with what its options depend on: the destinations and the collection policies of its merchant, the fee policy
 * of the merchant or else of its account (null without one), and the accounts for which the requester has posted buyer data.
 */
export type PaymentWithTerms = PaymentWithMerchant & {
  destinations: Destination[];
  policies: Policy[];
  collected: string[];
  basis_points: number | null;
  fixed_micros: bigint | null;
};

// As one text: kysely takes longer to write these columns one by one than Postgres to read them.
const columns = sql.raw(
  [...paymentColumns.map((column) => `p.${column}`), "m.name as merchant_name", "m.logo_id as merchant_logo_id"].join(
    ", ",
  ),
);

/** Returns a payment of either mode with its terms. Concurrent calls share a statement, because a wallet waits for it. */
export const findPaymentWithTerms = batchStatements(async (db: Db, asked: readonly Asked[]) => {
  const { rows } = await sql<PaymentWithTerms & { n: number }>`
    select a.n, ${columns}, fee.basis_points, fee.fixed_micros,
      array(select c.account from collected_data c
        where c.payment_id = p.id and c.requester = a.requester and c.attempt_id is null) as collected,
      (select coalesce(json_agg(d), '[]') from (
        select asset, destination, direct, accepts_other_assets from settlement_destination
        where merchant_id = p.merchant_id) d) as destinations,
      (select coalesce(json_agg(c), '[]') from (
        select asset, unit, minimum::text as minimum from collection_policy where merchant_id = p.merchant_id) c) as policies
    from unnest(${asked.map(({ paymentId }) => paymentId)}::text[], ${asked.map(({ requester }) => requester)}::text[])
      with ordinality a (id, requester, n)
    join payment p on p.id = a.id
    join merchant m on m.id = p.merchant_id
    left join lateral (
      select f.basis_points, f.fixed_micros from fee_policy f
      where f.account_id = p.account_id and (f.merchant_id = p.merchant_id or f.merchant_id is null)
      order by f.merchant_id nulls last limit 1
    ) fee on true`.execute(db);
  const byNumber = new Map(rows.map((row) => [Number(row.n), row]));
  return asked.map((_, index) => byNumber.get(index + 1));
});

/** Returns a payment of either mode with its merchant's assets. Concurrent calls share a statement: every page needs one. */
export const findPaymentWithPaidAssets = batchStatements(async (db: Db, ids: readonly string[]) => {
  const { rows } = await sql<PaymentWithPaidAssets>`
    select ${columns}, (select coalesce(json_agg(d), '[]') from (
      select asset, accepts_other_assets from settlement_destination where merchant_id = p.merchant_id) d) as destinations
    from payment p join merchant m on m.id = p.merchant_id where p.id = any(${ids})`.execute(db);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => byId.get(id));
});

/** The assets that a merchant is paid in, and whether each also takes payments in other assets of its currency. */
export type PaidAsset = { asset: string; accepts_other_assets: boolean };

/** Returns the assets that a merchant is paid in. Concurrent calls share a statement, because many payments have one merchant. */
export const listPaidAssets: (db: Db, merchantId: string) => Promise<PaidAsset[]> = batchStatements(
  async (db, merchantIds: readonly string[]) => {
    const rows = await db
      .selectFrom("settlement_destination")
      .select(["merchant_id", "asset", "accepts_other_assets"])
      .where(sql<boolean>`merchant_id = any(${[...new Set(merchantIds)]})`)
      .execute();
    const byMerchant = Map.groupBy(rows, (row) => row.merchant_id);
    return merchantIds.map((id) => byMerchant.get(id) ?? []);
  },
);
