import { findPayment } from "../db/payments.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";
import type { PaymentQuery } from "./read.ts";

/**
 * Marks a payment as fully refunded, once. No money is moved by it: whoever refunds sends it from an account of its own.
 * Refuses with `payment_not_found`, `payment_not_succeeded` and `already_refunded`.
 */
export async function refundPayment(
  deps: Pick<PaymentDeps, "db" | "now">,
  query: PaymentQuery,
): Promise<Result<{ paymentId: string }>> {
  const payment = await findPayment(deps.db, { id: query.paymentId, mode: query.mode, merchant: query.merchant });
  if (!payment) return refuse("payment_not_found", "no such payment");
  // Succeeded is final, so this still holds when the row is written.
  if (payment.state !== "succeeded") return refuse("payment_not_succeeded", `the payment is ${payment.state}`);
  const made = await deps.db
    .insertInto("refund")
    .values({ id: newId("rfnd"), payment_id: payment.id, created_at: deps.now() })
    .onConflict((conflict) => conflict.column("payment_id").doNothing())
    .returning("id")
    .executeTakeFirst();
  return made ? done({ paymentId: payment.id }) : refuse("already_refunded", "the payment has been refunded before");
}
