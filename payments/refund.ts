import { inTransaction } from "../db/in-transaction.ts";
import { findOption } from "../db/options.ts";
import { findPayment, lockPayments, type PaymentRow } from "../db/payments.ts";
import { insertRefund, listRefunds } from "../db/refunds.ts";
import { type PaymentDeps, RING_AGAIN_MS } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";
import type { PaymentQuery } from "./read.ts";

/** An amount in minor units of the payment's unit, or of the asset that it was paid in (`caip19/` and the asset). */
export type RefundAmount = { unit: string; value: bigint };
/** What was asked for, and the refund that does it. */
export type RefundMade = { paymentId: string; refundId: string };

/**
 * Sends a payment's money back to the account, chain and asset it came from: all that is left of it, or a part. The
 * merchant's own balance pays for it (`beginRefunds`); in test mode, and where the buyer paid the merchant directly, it is
 * only marked. Refuses with
 * `payment_not_found`, `payment_not_succeeded`, `already_refunded` when nothing is left, and `params_validation` for an
 * amount that does not fit.
 */
export async function refundPayment(
  deps: Pick<PaymentDeps, "db" | "now" | "ring">,
  query: PaymentQuery & { amount?: RefundAmount | undefined },
): Promise<Result<RefundMade>> {
  const made = await inTransaction(deps.db, async (db) => {
    const payment = await findPayment(db, { id: query.paymentId, mode: query.mode, merchant: query.merchant });
    if (!payment) return refuse("payment_not_found", "no such payment");
    // Succeeded is final, so this still holds when the row is written.
    if (payment.state !== "succeeded") return refuse("payment_not_succeeded", `the payment is ${payment.state}`);
    // One refund of a payment at a time: their sum counts.
    await lockPayments(db, [payment.id]);
    const before = await listRefunds(db, payment.id);
    const standing = before.filter(({ state }) => state !== "withdrawn");
    const left = (payment.paid_amount ?? 0n) - standing.reduce((sum, { amount }) => sum + amount, 0n);
    if (left <= 0n) return refuse("already_refunded", "the payment has been refunded before");
    const amount = query.amount ? toPaidAsset(payment, query.amount) : left;
    if (amount === undefined)
      return refuse("params_validation", `amount.unit: expected ${payment.unit} or caip19/${payment.paid_asset}`);
    if (amount <= 0n || amount > left)
      return refuse("params_validation", `amount.value: more than is left of the payment, or nothing (${left} left)`);
    const option = await findOption(db, { id: payment.option_id ?? "", paymentId: payment.id });
    // What was paid to the merchant itself is its own to send back.
    const isMoved = payment.mode === "live" && option !== undefined && !payment.direct;
    const at = deps.now();
    const id = newId("rfnd");
    await insertRefund(db, {
      ...{ id, payment_id: payment.id, exception_id: null, merchant_id: payment.merchant_id },
      // Counted with those that were withdrawn: a number that was given once is never given to another refund.
      ...{ number: before.length + 1, asset: payment.paid_asset ?? "", amount, receiver: option?.payer ?? null },
      ...drawnFor(payment, amount),
      ...{ state: isMoved ? "due" : "marked", created_at: at },
      due_at: isMoved ? new Date(at.getTime() + RING_AGAIN_MS) : null,
    });
    return done({ paymentId: payment.id, refundId: id, isMoved });
  });
  if (!made.ok) return made;
  const { isMoved, ...value } = made.value;
  if (isMoved) await ringRefunds(deps, [value.refundId]);
  return done(value);
}

/** Minor units of the asset that was paid; undefined for another unit. Rounded down, so that no refund is above its share. */
function toPaidAsset(payment: PaymentRow, { unit, value }: RefundAmount): bigint | undefined {
  if (unit === `caip19/${payment.paid_asset}`) return value;
  if (unit !== payment.unit) return undefined;
  return ((payment.paid_amount ?? 0n) * value) / payment.value;
}

/**
 * What a refund takes of its merchant's balance, where that is in another asset: as much of what the payment came to
 * there as is refunded of it, its fee included, rounded up.
 */
function drawnFor({ owed_asset, owed_amount, paid_amount, fee }: PaymentRow, amount: bigint) {
  if (owed_asset === null || owed_amount === null || paid_amount === null)
    return { owed_asset: null, owed_amount: null };
  const net = paid_amount - fee;
  return { owed_asset, owed_amount: (owed_amount * amount + net - 1n) / net };
}

/** Rings for refunds that may be begun. */
export async function ringRefunds(deps: Pick<PaymentDeps, "ring">, ids: readonly string[]): Promise<void> {
  const [first, ...others] = new Set(ids);
  if (first) await deps.ring("refund", [{ data: { refundIds: [first, ...others] } }]);
}
