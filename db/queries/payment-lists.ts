import { sql } from "kysely";
import type { PaymentState } from "../states.ts";
import type { Db, Mode } from "../tables.ts";
import { deducted } from "./settlement-deductions.ts";

/** Selects the payments of a list. An undefined member does not narrow. */
export type PaymentFilter = {
  accountId: string;
  mode: Mode;
  /** The merchants that the caller's key is restricted to; null or unset: all of them. */
  onlyMerchants?: readonly string[] | null;
  merchantIds?: readonly string[] | undefined;
  from?: Date | undefined;
  before?: Date | undefined;
  states?: readonly PaymentState[] | undefined;
  chains?: readonly string[] | undefined;
  assets?: readonly string[] | undefined;
  /** A substring of the reference, without regard to case. */
  reference?: string | undefined;
  /** Values that the metadata has under these names. */
  metadata?: Readonly<Record<string, string>> | undefined;
};

export type PaymentOrder = {
  by: "date" | "amount";
  dir: "asc" | "desc";
  after?: readonly [string, string] | undefined;
};

export type ListedPayment = Awaited<ReturnType<typeof listPaymentRows>>[number];

/** Returns a page of payments with their merchant, the paying option and the payout. Ties are ordered by id. */
export async function listPaymentRows(db: Db, filter: PaymentFilter, order: PaymentOrder, limit: number) {
  return selectPage(db, filter, order, limit).execute();
}

/** Builds the query of `listPaymentRows`. Exported for a test of its query plan. */
export function selectPage(db: Db, filter: PaymentFilter, order: PaymentOrder, limit: number) {
  const { by, dir, after } = order;
  const column = by === "date" ? sql`p.created_at` : sql`p.value`;
  let page = narrow(db, filter)
    .innerJoin("merchant as m", "m.id", "p.merchant_id")
    .leftJoin("settlement as s", "s.id", "p.settlement_id")
    .selectAll("p")
    .select([
      "m.name as merchant_name",
      "m.logo_id as merchant_logo_id",
      "o.account as buyer",
      payingChain.as("chain"),
      payingAsset.as("option_asset"),
      sql<bigint | null>`coalesce(o.amount, p.paid_amount)`.as("option_amount"),
      sql<bigint>`coalesce(o.fee, 0)`.as("option_fee"),
      sql<bigint>`coalesce(o.fee_fixed, 0)`.as("option_fee_fixed"),
      sql<number>`coalesce(o.fee_basis_points, 0)`.as("option_fee_basis_points"),
      "s.state as settlement_state",
      "s.paid_at as settled_at",
      settlementHash.as("settlement_tx_hash"),
      deducted.as("deducted"),
    ])
    .orderBy(column, dir)
    .orderBy("p.id", dir)
    .limit(limit);
  if (after) {
    const start = by === "date" ? sql`${after[0]}::timestamptz` : sql`${after[0]}::numeric`;
    const than = dir === "asc" ? sql`>` : sql`<`;
    page = page.where(sql<boolean>`(${column}, p.id) ${than} (${start}, ${after[1]})`);
  }
  return page;
}

/**
 * Returns sums over all payments of a filter: the revenue of succeeded payments by unit, the number of payments, and the
 * number of distinct payers. Reads every selected payment, which takes about one second per million on two cores: a caller
 * with many payments narrows by time.
 */
export async function sumPayments(
  db: Db,
  filter: PaymentFilter,
): Promise<{ revenue: { unit: string; value: bigint }[]; transactions: number; customers: number }> {
  const rows = await narrow(db, filter)
    .select((e) => [
      "p.unit",
      sql<boolean>`p.state = 'succeeded'`.as("succeeded"),
      e.fn.countAll<number>().as("count"),
      e.fn.sum<bigint>("p.value").as("value"),
    ])
    .groupBy(["p.unit", sql`p.state = 'succeeded'`])
    .orderBy("p.unit")
    .execute();
  // Not count(distinct …), which sorts the payers of all payments and cannot run in parallel workers.
  const payers = narrow(db, filter).where("p.state", "=", "succeeded").where("o.payer", "is not", null);
  const { customers } = await db
    .selectFrom(payers.select("o.payer").distinct().as("payers"))
    .select((e) => e.fn.countAll<number>().as("customers"))
    .executeTakeFirstOrThrow();
  return {
    revenue: rows.filter((row) => row.succeeded).map(({ unit, value }) => ({ unit, value: BigInt(value) })),
    transactions: rows.reduce((sum, row) => sum + Number(row.count), 0),
    customers: Number(customers),
  };
}

/** The asset of the confirmed option. A simulated payment (test mode) has no option, but has a paid asset. */
const payingAsset = sql<string | null>`coalesce(o.asset, p.paid_asset)`;
const payingChain = sql<string | null>`coalesce(o.chain, split_part(p.paid_asset, '/', 1))`;

/** The transaction of the payout, once it is booked. */
const settlementHash = sql<string | null>`coalesce(s.tx_hash, (
  select g.tx_hash from transfer t join ledger_group g on g.kind = 'settlement_paid' and g.subject = t.id
  where t.settlement_id = p.settlement_id and t.purpose = 'settlement'))`;

function narrow(db: Db, filter: PaymentFilter) {
  let query = db
    .selectFrom("payment as p")
    .leftJoin("payment_option as o", "o.id", "p.option_id")
    .where("p.account_id", "=", filter.accountId)
    .where("p.mode", "=", filter.mode);
  const { onlyMerchants, merchantIds, from, before, states, chains, assets, reference, metadata } = filter;
  if (onlyMerchants) query = query.where("p.merchant_id", "in", [...onlyMerchants]);
  if (merchantIds) query = query.where("p.merchant_id", "in", [...merchantIds]);
  if (from) query = query.where("p.created_at", ">=", from);
  if (before) query = query.where("p.created_at", "<", before);
  if (states) query = query.where("p.state", "in", [...states]);
  if (chains) query = query.where(sql<boolean>`${payingChain} = any(${chains})`);
  if (assets) query = query.where(sql<boolean>`${payingAsset} = any(${assets})`);
  if (reference) query = query.where(sql<boolean>`position(lower(${reference}) in lower(p.reference_id)) > 0`);
  if (metadata) query = query.where(sql<boolean>`p.metadata @> ${JSON.stringify(metadata)}::jsonb`);
  return query;
}
