import { sql } from "kysely";
import { jsonArrayFrom } from "kysely/helpers/postgres";
import { batchStatements } from "../batch-calls.ts";
import { paymentColumns } from "../columns.ts";
import type { Db } from "../tables.ts";
import type { PaymentWithMerchant } from "./payments.ts";

type Asked = { paymentId: string; requester: string | null };

/**
 * A payment with what its options depend on: the destinations and the collection policies of its merchant, the fee policy
 * of the merchant or else of its account (null without one), and the accounts for which the requester has posted buyer data.
 */
export type PaymentWithTerms = NonNullable<Awaited<ReturnType<typeof findPaymentWithTerms>>>;

/**
 * Returns a payment of either mode with its terms. Concurrent calls share a statement, because a wallet or a buyer waits for
 * it.
 */
export const findPaymentWithTerms = batchStatements(async (db: Db, asked: readonly Asked[]) => {
  const ids = asked.map(({ paymentId }) => paymentId);
  const requesters = asked.map(({ requester }) => requester);
  const rows = await db
    .selectFrom(
      sql<Numbered>`(select id, requester, n from unnest(${ids}::text[], ${requesters}::text[]) with ordinality u (id, requester, n))`.as(
        "a",
      ),
    )
    .innerJoin("payment as p", "p.id", "a.id")
    .innerJoin("merchant as m", "m.id", "p.merchant_id")
    .leftJoinLateral(
      (query) =>
        query
          .selectFrom("fee_policy as f")
          .select(["f.basis_points", "f.fixed_micros"])
          .whereRef("f.account_id", "=", "p.account_id")
          .where((where) =>
            where.or([where("f.merchant_id", "=", where.ref("p.merchant_id")), where("f.merchant_id", "is", null)]),
          )
          .orderBy("f.merchant_id", (order) => order.asc().nullsLast())
          .limit(1)
          .as("fee"),
      (join) => join.onTrue(),
    )
    .select(paymentColumns.map((column) => `p.${column}` as const))
    .select((query) => [
      "a.n",
      "m.name as merchant_name",
      "m.logo_id as merchant_logo_id",
      "fee.basis_points",
      "fee.fixed_micros",
      jsonArrayFrom(
        query
          .selectFrom("settlement_destination as d")
          .select(["d.asset", "d.destination", "d.direct", "d.accepts_other_assets"])
          .whereRef("d.merchant_id", "=", "p.merchant_id"),
      ).as("destinations"),
      jsonArrayFrom(
        query
          .selectFrom("collection_policy as c")
          // As text, because JSON has no exact numbers.
          .select(["c.asset", "c.unit", sql<string | null>`c.minimum::text`.as("minimum")])
          .whereRef("c.merchant_id", "=", "p.merchant_id"),
      ).as("policies"),
      sql<string[]>`array(select c.account from collected_data c
        where c.payment_id = p.id and c.requester = a.requester and c.attempt_id is null)`.as("collected"),
    ])
    .execute();
  const byNumber = new Map(rows.map((row): [number, typeof row & PaymentWithMerchant] => [row.n, row]));
  return asked.map((_, index) => byNumber.get(index + 1));
});

/** A payment and a requester with their place in the list, from 1. */
type Numbered = { id: string; requester: string | null; n: number };

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
