import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { findOption } from "../../db/queries/payment-options.ts";
import { findPayment, lockPayments, type PaymentRow } from "../../db/queries/payments.ts";
import { insertPaymentRefund, listRefunds, type RefundRow } from "../../db/queries/refunds.ts";
import type { Db } from "../../db/tables.ts";
import type { Networks } from "../../runtime/networks/read-networks.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import type { PaymentQuery } from "../lifecycle/read-payment.ts";
import { canonicalUnit } from "../money.ts";
import { type PaymentDeps, REENQUEUE_AFTER_MS } from "../payment-deps.ts";
import { validatePart } from "./refund-parts.ts";
import { type RefundView, toRefundView } from "./refund-views.ts";

/** An amount in minor units of the payment's unit, or of the asset that it was paid in (`caip19/` and the asset). */
export type RefundAmount = { unit: string; value: bigint };

/**
 * Creates a refund of a payment, in full or in part, to the account, chain and asset that it came from. The merchant's
 * balance pays for it (`beginRefunds`). In test mode, and where the buyer paid the merchant directly, the refund is
 * only marked. Refuses with `payment_not_found`, `payment_not_succeeded`, `already_refunded` when nothing is left, and
 * `params_validation` for an invalid amount, or a part that `validatePart` refuses.
 */
export async function refundPayment(
  deps: Pick<PaymentDeps, "now" | "enqueue"> & { db: Db; networks: Pick<Networks, "chains"> },
  query: PaymentQuery & { actor: AuditActor; amount?: RefundAmount | undefined },
): Promise<Result<RefundView>> {
  const made = await inTransaction(deps.db, async (db) => {
    const payment = await findPayment(db, query);
    if (!payment) return refuse("payment_not_found", "no such payment");
    // Succeeded is a final state, so this still holds when the row is written.
    if (payment.state !== "succeeded") return refuse("payment_not_succeeded", `the payment is ${payment.state}`);
    // The lock serializes the refunds of a payment, because the limit applies to their sum.
    await lockPayments(db, [payment.id]);
    const before = await listRefunds(db, payment.id);
    const left = computeLeft(payment.paid_amount, before);
    if (left <= 0n) return refuse("already_refunded", "the payment has been refunded before");
    const amount = query.amount ? toPaidAsset(payment, query.amount) : left;
    if (amount === undefined)
      return refuse("params_validation", `amount.unit: expected ${payment.unit} or caip19/${payment.paid_asset}`);
    if (amount <= 0n || amount > left)
      return refuse(
        "params_validation",
        `amount.value: is zero, or exceeds what is left of the payment (${left} of caip19/${payment.paid_asset} left)`,
      );
    const wrong = validatePart(deps, { asset: payment.paid_asset ?? "", amount, left, refunds: before });
    if (wrong) return refuse("params_validation", wrong);
    const option = await findOption(db, { id: payment.option_id ?? "", paymentId: payment.id });
    // The merchant itself returns money that went directly to it.
    const isMoved = payment.mode === "live" && option !== undefined && !payment.direct;
    const at = deps.now();
    const id = newId("rfnd", at);
    const state = isMoved ? "due" : "marked";
    const row = await insertPaymentRefund(db, {
      id,
      payment_id: payment.id,
      // Withdrawn refunds count too: a refund number is never reused.
      number: before.length + 1,
      amount,
      state,
      created_at: at,
      due_at: isMoved ? new Date(at.getTime() + REENQUEUE_AFTER_MS) : null,
    });
    const after = { payment: payment.id, asset: payment.paid_asset, amount: amount.toString(), state };
    const { actor } = query;
    await insertAuditEntries(db, [{ actor, action: "refund.created", subject: id, before: null, after, at }]);
    return done({ refund: toRefundView({ ...row, reference_id: payment.reference_id, blocked_by: null }), isMoved });
  });
  if (!made.ok) return made;
  const { isMoved, refund } = made.value;
  if (isMoved) await enqueueRefunds(deps, [refund.refundId]);
  return done(refund);
}

/**
 * Returns how much of a payment can still be refunded, minor units of the asset that was paid. Withdrawn refunds do not count.
 * @param paid what the buyer paid; null for a payment without money
 */
export function computeLeft(paid: bigint | null, refunds: readonly Pick<RefundRow, "amount" | "state">[]): bigint {
  const standing = refunds.filter(({ state }) => state !== "withdrawn");
  return (paid ?? 0n) - standing.reduce((sum, { amount }) => sum + amount, 0n);
}

/** Converts a refund amount to minor units of the paid asset; undefined for another unit. Rounds down. */
function toPaidAsset(payment: PaymentRow, { unit, value }: RefundAmount): bigint | undefined {
  const asked = canonicalUnit(unit);
  if (asked === `caip19/${payment.paid_asset}`) return value;
  if (asked !== canonicalUnit(payment.unit)) return undefined;
  return ((payment.paid_amount ?? 0n) * value) / payment.value;
}

/** Enqueues refunds that can begin. */
export async function enqueueRefunds(deps: Pick<PaymentDeps, "enqueue">, ids: readonly string[]): Promise<void> {
  const [first, ...others] = new Set(ids);
  if (first) await deps.enqueue("refund", [{ data: { refundIds: [first, ...others] } }]);
}
