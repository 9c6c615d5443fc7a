import { canonicalAsset } from "../../chains/canonical-ids.ts";
import { findEventBefore as findEvent, listMovesAfter, type RecentMoves } from "../../db/queries/payment-changes.ts";
import {
  findPayment,
  findPaymentOfAnyMode,
  findPayout,
  isReached,
  listPayments,
  type NewPaymentRow,
  type PaymentQuery,
  type PaymentRow,
  type PaymentWithMerchant,
} from "../../db/queries/payments.ts";
import { sumRefunds } from "../../db/queries/refunds.ts";
import { isFinalPaymentState } from "../../db/states.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { Caller } from "../merchants/callers.ts";
import { currencyMoney, tokenMoney } from "../money.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Money, PaymentDetail, PaymentStatus, PaymentView } from "../views.ts";

type MoneyDeps = Pick<PaymentDeps, "chains" | "assetUnits">;
type Deps = MoneyDeps & Pick<PaymentDeps, "db">;

export type { PaymentQuery } from "../../db/queries/payments.ts";

/** Returns a payment. Refuses with `payment_not_found` (also for a payment of another mode, account or merchant). */
export async function findPaymentView(deps: Deps, args: PaymentQuery): Promise<Result<PaymentView>> {
  const row = await findPayment(deps.db, args);
  return row ? done(await toPaymentView(deps, row)) : refuse("payment_not_found", "no such payment");
}

/** Returns a payment with its payout and what is refunded, for its merchant. Refuses like `findPaymentView`. */
export async function findPaymentDetail(deps: Deps, args: PaymentQuery): Promise<Result<PaymentDetail>> {
  const row = await findPayment(deps.db, args);
  if (!row) return refuse("payment_not_found", "no such payment");
  const payout = row.settlement_id === null ? undefined : await findPayout(deps.db, row.id);
  const owed = findCredit(row);
  const settlement =
    payout && owed
      ? { txId: payout.tx_hash, amount: await toMoney(deps, `caip19/${owed.asset}`, owed.amount - payout.deducted) }
      : null;
  const { checkout, description, metadata } = row;
  const more = { description, metadata: metadata ?? {}, checkout, settlement };
  return done({ ...(await toPaymentView(deps, row)), ...more, refundedAmount: await readRefunded(deps, row) });
}

/** Returns what a payment's refunds return or will return; null without one. Only a succeeded payment has some. */
async function readRefunded(deps: Deps, row: PaymentRow): Promise<Money | null> {
  if (row.state !== "succeeded" || row.paid_asset === null) return null;
  const refunded = await sumRefunds(deps.db, row.id);
  return refunded === 0n ? null : toMoney(deps, `caip19/${row.paid_asset}`, refunded);
}

/** Returns what a succeeded payment credits to its merchant; undefined before it succeeds. */
export function findCredit(row: PaymentRow): { asset: string; amount: bigint } | undefined {
  if (row.owed_asset !== null && row.owed_amount !== null) return { asset: row.owed_asset, amount: row.owed_amount };
  if (row.paid_asset === null || row.paid_amount === null) return undefined;
  return { asset: row.paid_asset, amount: row.paid_amount - row.fee };
}

/** Returns the status of a payment. Refuses like `findPaymentView`. */
export async function findStatus(deps: Deps, args: PaymentQuery): Promise<Result<PaymentStatus>> {
  const row = await findPayment(deps.db, args);
  return row ? done(await toStatus(deps, row)) : refuse("payment_not_found", "no such payment");
}

/** Returns true for a payment that the caller reaches with a key of the other mode only. */
export async function isInOtherMode(
  { db }: Pick<Deps, "db">,
  args: { paymentId: string; caller: Pick<Caller, "accountId" | "mode" | "onlyMerchants"> },
): Promise<boolean> {
  const { accountId, mode, onlyMerchants } = args.caller;
  const row = await findPaymentOfAnyMode(db, args.paymentId);
  if (row?.account_id !== accountId || row.mode === mode) return false;
  return !onlyMerchants || onlyMerchants.includes(row.merchant_id);
}

/** The status of a payment with what decides who may see it. */
export type OwnedStatus = {
  status: PaymentStatus;
  owner: Pick<PaymentRow, "mode" | "account_id" | "merchant_id">;
};

/** Returns a status to a caller. Refuses like `findPaymentView`. */
export function showStatus(found: OwnedStatus | undefined, query: PaymentQuery): Result<PaymentStatus> {
  return found && isReached(found.owner, query) ? done(found.status) : refuse("payment_not_found", "no such payment");
}

/** Returns the status of a payment of any account and mode. Concurrent calls share a statement. */
export async function findOwnedStatus(deps: Deps, paymentId: string): Promise<OwnedStatus | undefined> {
  const row = await findPaymentOfAnyMode(deps.db, paymentId);
  return row && toOwnedStatus(deps, row);
}

/** Returns the status of several payments in one query, in no particular order. Omits unknown ids. */
export async function listOwnedStatuses(deps: Deps, paymentIds: readonly string[]): Promise<OwnedStatus[]> {
  const rows = await listPayments(deps.db, paymentIds);
  return Promise.all(rows.map((row) => toOwnedStatus(deps, row)));
}

/** Returns the moves of all payments after an event, in one statement. */
export async function findMovesAfter({ db }: Pick<PaymentDeps, "db">, event: number): Promise<RecentMoves> {
  return listMovesAfter(db, event);
}

async function toOwnedStatus(deps: Deps, row: PaymentRow): Promise<OwnedStatus> {
  const { mode, account_id, merchant_id } = row;
  return { status: await toStatus(deps, row), owner: { mode, account_id, merchant_id } };
}

async function toStatus(deps: MoneyDeps, row: PaymentRow): Promise<PaymentStatus> {
  const info =
    row.state === "succeeded" && row.tx_id !== null && row.paid_asset !== null && row.paid_amount !== null
      ? { txId: row.tx_id, optionAmount: await toMoney(deps, `caip19/${row.paid_asset}`, row.paid_amount) }
      : null;
  const { id: paymentId, state, state_version: stateVersion, updated_at: changedAt, failure_code: failureCode } = row;
  return { paymentId, state, isFinal: isFinalPaymentState(state), stateVersion, changedAt, failureCode, info };
}

/** Returns the view of a payment that was just inserted. */
export async function toNewPaymentView(
  deps: MoneyDeps,
  row: NewPaymentRow,
  merchant: PaymentView["merchant"],
): Promise<PaymentView> {
  return {
    paymentId: row.id,
    state: "requires_action",
    isFinal: false,
    stateVersion: 0,
    changedAt: row.created_at,
    failureCode: null,
    info: null,
    mode: row.mode,
    referenceId: row.reference_id,
    amount: await toMoney(deps, row.unit, row.value),
    merchant,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}

/** Converts a payment row to the view that callers see. */
export async function toPaymentView(deps: MoneyDeps, row: PaymentWithMerchant): Promise<PaymentView> {
  return {
    ...(await toStatus(deps, row)),
    mode: row.mode,
    referenceId: row.reference_id,
    amount: await toMoney(deps, row.unit, row.value),
    merchant: { id: row.merchant_id, name: row.merchant_name, logoId: row.merchant_logo_id },
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}

/**
 * Adds the display data to an amount. Keeps the spelling of the unit. An asset that has left the networks file has the symbol and
 * decimals that workers have reported. One that no worker has reported is displayed by its identifier, in minor units.
 */
export async function toMoney(deps: MoneyDeps, unit: string, value: bigint): Promise<Money> {
  if (unit.startsWith("iso4217/")) return currencyMoney(value, unit);
  const asset = canonicalAsset(unit.slice("caip19/".length));
  for (const chain of deps.chains.values()) {
    const token = chain.tokens.get(asset);
    if (token) return { ...tokenMoney(value, token, chain.network), unit };
  }
  const { symbol, decimals } = (await deps.assetUnits.find(asset)) ?? { symbol: asset, decimals: 0 };
  const network = deps.chains.get(asset.split("/")[0] ?? "")?.network;
  return {
    unit,
    value,
    display: {
      assetSymbol: symbol,
      assetName: symbol,
      decimals,
      networkName: network?.name,
      networkIconUrl: network?.iconUrl,
    },
  };
}

/** Returns the id of the newest event older than `ms` milliseconds; 0 when there is none. */
export function findEventBefore({ db }: Pick<PaymentDeps, "db">, ms: number): Promise<number> {
  return findEvent(db, ms);
}
