import { inTransaction } from "../../db/in-transaction.ts";
import { creditMerchants } from "../../db/queries/ledger-groups.ts";
import { findPaymentRow, lockPayments } from "../../db/queries/payments.ts";
import {
  type DueRefund,
  insertRefund,
  listRefunds,
  lockDue,
  type RefundRow,
  setRefundAmount,
} from "../../db/queries/refunds.ts";
import { lockPaymentsOf, relinkUnpaid } from "../../db/queries/settlement-links.ts";
import {
  insertSettlements,
  lockNotBegun,
  reduceSettlement,
  type SettlementRow,
  type SettlementWithDestination,
} from "../../db/queries/settlements.ts";
import type { Db } from "../../db/tables.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { ForgottenPayouts } from "./paid-before-restore.ts";
import { computeLeft } from "./refund-payment.ts";

type Deps = Pick<PaymentDeps, "db" | "now">;
type Split<Row> = { ready: Row[]; waiting: Row[] };

/**
 * Reduces settlements to what their forgotten payouts have paid, and inserts settlements for the remainders. The signer counts
 * for ever what it signs with a nonce: if it were asked for the whole amount with this one, it would refuse the remainder with
 * the next one. A settlement waits until its payout is final and booked, because a reorg can revert the payout before. Returns
 * the settlements that can be signed, as they are now. Skips those that have begun meanwhile.
 */
export async function splitForgottenSettlements(
  deps: Deps,
  settlements: readonly SettlementWithDestination[],
  forgotten: ForgottenPayouts,
): Promise<Split<SettlementWithDestination>> {
  return splitForgotten(settlements, forgotten, (settlement, paid) =>
    inTransaction(deps.db, async (db) => {
      const [locked] = await lockNotBegun(db, [settlement.id]);
      if (!locked) return undefined;
      const now = { ...settlement, amount: locked.amount };
      const rest = now.amount - paid;
      // Nothing has left the balance yet.
      if (rest > 0n) await splitSettlement(deps, db, now, { rest, credit: 0n });
      return { ...now, amount: rest > 0n ? paid : now.amount };
    }),
  );
}

/** Does the same with refunds. */
export async function splitForgottenRefunds(
  deps: Deps,
  refunds: readonly DueRefund[],
  forgotten: ForgottenPayouts,
): Promise<Split<DueRefund>> {
  return splitForgotten(refunds, forgotten, (refund, paid) =>
    inTransaction(deps.db, async (db) => {
      // The lock serializes the numbers of a payment's refunds.
      await lockPayments(db, [refund.payment_id ?? ""]);
      const locked = await lockDue(db, refund.id);
      if (!locked) return undefined;
      const now = { ...refund, ...locked };
      if (now.amount <= paid) return now;
      const { owedSent } = await splitRefund(deps, db, now, now.amount - paid);
      return { ...now, amount: paid, owed_amount: owedSent };
    }),
  );
}

/** Splits rows whose nonces the chain shows with smaller amounts, each in a transaction of its own. */
async function splitForgotten<Row extends { id: string; amount: bigint }>(
  rows: readonly Row[],
  forgotten: ForgottenPayouts,
  split: (row: Row, paid: bigint) => Promise<Row | undefined>,
): Promise<Split<Row>> {
  const result: Split<Row> = { ready: [], waiting: [] };
  for (const row of rows) {
    const payout = forgotten.get(row.id);
    if (!payout || payout.amount >= row.amount) result.ready.push(row);
    else if (!payout.booked) result.waiting.push(row);
    else result.ready.push(...[await split(row, payout.amount)].filter((one) => one !== undefined));
  }
  return result;
}

/**
 * Reduces a locked settlement by `rest`, and inserts a settlement with the next number for it, which is due at once. The payments
 * that the reduced settlement does not cover are paid out with the new one, and are reported as paid out only then.
 * @param of.credit what the merchant's balance lacks of the rest: nothing, unless the settlement has begun
 */
export async function splitSettlement(
  { now }: Pick<Deps, "now">,
  db: Db,
  settlement: SettlementRow,
  { rest, credit }: { rest: bigint; credit: bigint },
): Promise<void> {
  const { id, merchant_id: merchantId, mode, asset, converted } = settlement;
  const at = now();
  // Lock order: payments, then balances and queues, as where a refund is requested (avoids deadlock).
  await lockPaymentsOf(db, id);
  await reduceSettlement(db, { id, by: rest });
  const [number = 0] = await creditMerchants(db, [{ merchantId, asset, amount: credit, settlements: 1 }]);
  const row = { id: newId("stl", at), merchantId, mode, asset, number, amount: rest, dueAt: at, converted };
  await insertSettlements(db, [row], at);
  await relinkUnpaid(db, { from: id, to: row.id, paid: settlement.amount - rest });
}

/** What the parts of a refund draw in the asset of the balance, if that is another one. */
type OwedParts = { owedSent: bigint | null; owedRest: bigint | null };

/**
 * Returns what the sent part of a refund and its rest draw. Both parts of a refund in another asset draw their shares rounded up, so the
 * first one can draw all of it (`owedRest` is 0). Pure.
 */
export function shareOwed({ amount, owed_amount }: Pick<RefundRow, "amount" | "owed_amount">, rest: bigint): OwedParts {
  if (owed_amount === null) return { owedSent: null, owedRest: null };
  const owedSent = (owed_amount * (amount - rest) + amount - 1n) / amount;
  return { owedSent, owedRest: owed_amount - owedSent };
}

/**
 * Reduces a locked refund of a locked payment by `rest`, and inserts a refund with the payment's next number for it, as far as the
 * payment's other refunds leave it. Returns what the parts draw (`shareOwed`).
 */
export async function splitRefund(
  { now }: Pick<Deps, "now">,
  db: Db,
  refund: RefundRow,
  rest: bigint,
): Promise<OwedParts> {
  const { id, payment_id: paymentId, merchant_id, asset, receiver, owed_asset } = refund;
  if (paymentId === null || merchant_id === null) throw new Error(`refund ${id} is drawn on no balance`);
  const at = now();
  const { owedSent, owedRest } = shareOwed(refund, rest);
  await setRefundAmount(db, { id, amount: refund.amount - rest, owedAmount: owedSent });
  const all = await listRefunds(db, paymentId);
  const payment = await findPaymentRow(db, paymentId);
  if (!payment) throw new Error(`the payment of ${id} does not exist`);
  // Others of the payment can have sent more than they were requested with.
  const left = computeLeft(payment.paid_amount, all);
  const next = left < rest ? left : rest;
  if (next <= 0n) return { owedSent, owedRest };
  const owedNext = owedRest === null ? null : (owedRest * next + rest - 1n) / rest;
  await insertRefund(db, {
    id: newId("rfnd", at),
    number: Math.max(...all.map(({ number }) => number)) + 1,
    payment_id: paymentId,
    exception_id: null,
    merchant_id,
    asset,
    amount: next,
    owed_asset,
    owed_amount: owedNext === 0n ? 1n : owedNext,
    receiver,
    state: "due",
    created_at: at,
    due_at: at,
  });
  return { owedSent, owedRest };
}
