import { hasMerchant } from "../../db/queries/merchants.ts";
import type { PaymentFilter } from "../../db/queries/payment-filters.ts";
import { type ListedPayment, listPaymentRows, type PaymentOrder } from "../../db/queries/payment-lists.ts";
import { sumPayments } from "../../db/queries/payment-sums.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { canonicalUnit, currencyDecimals } from "../money.ts";
import { type Page, readCursor, toPage } from "../pagination.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Money, PaymentView } from "../views.ts";
import { findCredit, toMoney, toPaymentView } from "./read-payment.ts";

type Deps = Pick<PaymentDeps, "db" | "chains" | "assetUnits">;

/**
 * A payment in a list. `tokenAmount`, `buyer`, `transaction` and `fees` (null without a fee) are set once the payment
 * is being paid.
 */
export type PaymentListView = PaymentView & {
  description: string | null;
  metadata: Record<string, string>;
  updatedAt: Date;
  tokenAmount: Money | null;
  /** CAIP-10 */
  buyer: string | null;
  transaction: { chain: string; hash: string | null } | null;
  fees: { total: Money; fixed: Money; basisPoints: number } | null;
  settlement: { settled: boolean; amount: Money | null; txHash: string | null } | null;
  settledAt: Date | null;
};

/**
 * Totals of all payments that match the filter, not of the page. `amount` is an exact decimal in units of `currency`.
 */
export type PaymentSums = {
  totalRevenue: { amount: string; currency: string }[];
  totalTransactions: number;
  totalCustomers: number;
};

export type ListArgs = Omit<PaymentFilter, "assets"> & {
  symbols?: readonly string[] | undefined;
  sortBy: PaymentOrder["by"];
  sortDir: PaymentOrder["dir"];
  cursor?: string | undefined;
  limit: number;
};

/**
 * Lists the payments of one merchant, also of a deleted one. Refuses like `listPaymentViews`, and with
 * `merchant_not_found`.
 */
export async function listMerchantPaymentViews(
  deps: Deps,
  { merchantId, ...rest }: Omit<ListArgs, "merchantIds"> & { merchantId: string },
): ReturnType<typeof listPaymentViews> {
  const { accountId, mode, onlyMerchants = null } = rest;
  if (!(await hasMerchant(deps.db, { merchantId, accountId, mode, onlyMerchants, evenDeleted: true })))
    return refuse("merchant_not_found", "Merchant-Id: no such merchant");
  return listPaymentViews(deps, { ...rest, merchantIds: [merchantId] });
}

/**
 * Lists the payments of an account, or of some of its merchants. Sorting by amount compares the requested minor units
 * and ignores the unit. Refuses with `params_validation` for an invalid cursor.
 */
export async function listPaymentViews(
  deps: Deps,
  { symbols, sortBy: by, sortDir: dir, cursor, limit, ...rest }: ListArgs,
): Promise<Result<Page<PaymentListView> & { stats: PaymentSums }>> {
  const after = readCursor(cursor, by === "date" ? "time" : "amount");
  if (!after.ok) return after;
  const filter = { ...rest, assets: symbols && (await listAssets(deps, symbols)) };
  const order = { by, dir, after: after.value };
  const sums = await sumPayments(deps.db, filter);
  const rows = await listPaymentRows(deps.db, filter, { order, limit: limit + 1, matching: sums.transactions });
  const keyOf = (row: ListedPayment): [string, string] => [
    by === "date" ? row.created_at.toISOString() : row.value.toString(),
    row.id,
  ];
  const { items, nextCursor } = toPage(rows, limit, keyOf);
  const stats = {
    totalRevenue: await Promise.all(addUp(sums.revenue).map(({ unit, value }) => toRevenue(deps, unit, value))),
    totalTransactions: sums.transactions,
    totalCustomers: sums.customers,
  };
  return done({ items: await Promise.all(items.map((row) => toListView(deps, row))), nextCursor, stats });
}

/** Lists the assets with one of these symbols, also those that have left the networks file. */
async function listAssets(deps: Deps, symbols: readonly string[]): Promise<string[]> {
  const tokens = [...deps.chains.values()].flatMap((chain) => [...chain.tokens.values()]);
  const listed = new Set(tokens.map(({ asset }) => asset));
  const left = (await deps.assetUnits.list()).filter(({ asset }) => !listed.has(asset));
  return [...tokens, ...left].filter(({ symbol }) => symbols.includes(symbol)).map(({ asset }) => asset);
}

/** Adds up the sums of units that differ only in their spelling. */
function addUp(sums: readonly { unit: string; value: bigint }[]): { unit: string; value: bigint }[] {
  const byUnit = Map.groupBy(sums, ({ unit }) => canonicalUnit(unit));
  return [...byUnit].map(([unit, same]) => ({ unit, value: same.reduce((sum, { value }) => sum + value, 0n) }));
}

async function toRevenue(deps: Deps, unit: string, value: bigint) {
  const code = unit.startsWith("iso4217/") ? unit.slice("iso4217/".length) : undefined;
  if (code) return { amount: toDecimal(value, currencyDecimals(code) ?? 2), currency: code };
  const { display } = await toMoney(deps, unit, value);
  return { amount: toDecimal(value, display.decimals), currency: display.assetSymbol };
}

/** Formats minor units as a decimal. */
export function toDecimal(value: bigint, decimals: number): string {
  const digits = value.toString().padStart(decimals + 1, "0");
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

async function toListView(deps: Deps, row: ListedPayment): Promise<PaymentListView> {
  const paid = row.asset !== null && row.option_amount !== null;
  const moneyOf = (value: bigint) => (paid ? toMoney(deps, `caip19/${row.asset}`, value) : null);
  const amount = row.option_amount ?? 0n;
  const owed = findCredit(row);
  const [total, fixed] = [await moneyOf(row.option_fee), await moneyOf(row.option_fee_fixed)];
  const settled = row.settlement_state === "paid";
  return {
    ...(await toPaymentView(deps, row)),
    description: row.description,
    metadata: row.metadata ?? {},
    updatedAt: row.updated_at,
    tokenAmount: await moneyOf(amount),
    fees: total && fixed && total.value > 0n ? { total, fixed, basisPoints: row.option_fee_basis_points } : null,
    buyer: row.buyer,
    transaction: row.chain === null ? null : { chain: row.chain, hash: row.tx_id },
    settlement:
      row.settlement_id === null
        ? null
        : {
            settled,
            amount: owed ? await toMoney(deps, `caip19/${owed.asset}`, owed.amount - row.deducted) : null,
            txHash: row.settlement_tx_hash,
          },
    settledAt: row.settled_at,
  };
}
