import { moveRows } from "../db/moves.ts";
import { findPayment } from "../db/payments.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import type { PaymentQuery } from "./read.ts";

export type Cancelled = {
  paymentId: string;
  cancelledAt: Date;
  cancelledReason: "cancelled_by_user" | "cancelled_by_merchant";
};

/**
 * Ends a payment that still awaits its buyer. Whoever comes first decides between this, a good confirm and the deadline:
 * the move is guarded. Again for one that is cancelled already, with what was said the first time.
 * Refuses with `payment_not_found`, and `invalid_state` once it is being paid or has ended.
 */
export async function cancelPayment(
  deps: PaymentDeps,
  query: PaymentQuery,
  reason: Cancelled["cancelledReason"],
): Promise<Result<Cancelled>> {
  const asked = { id: query.paymentId, mode: query.mode, merchant: query.merchant };
  const before = await findPayment(deps.db, asked);
  if (!before) return refuse("payment_not_found", "no such payment");
  if (before.state === "requires_action") {
    const set = { due_at: null, cancelled_reason: reason };
    const move = { ids: [before.id], from: "requires_action", to: "cancelled", at: deps.now(), set } as const;
    if ((await moveRows(deps.db, "payment", move)).length > 0) {
      deps.metrics.paymentMoves.inc({ mode: before.mode, from: "requires_action", to: "cancelled" });
      await deps.announce([before.id]);
    }
  }
  const now = (await findPayment(deps.db, asked)) ?? before;
  if (now.state !== "cancelled" || !now.cancelled_reason) return refuse("invalid_state", `the payment is ${now.state}`);
  return done({ paymentId: now.id, cancelledAt: now.updated_at, cancelledReason: now.cancelled_reason });
}
