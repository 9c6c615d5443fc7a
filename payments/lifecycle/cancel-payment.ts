import { inTransaction } from "../../db/in-transaction.ts";
import { moveRows } from "../../db/moves.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { findPayment } from "../../db/queries/payments.ts";
import { findCancelObstacle, isCancellable } from "../../db/queries/requesters.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Requester } from "../requester.ts";
import type { PaymentQuery } from "./read-payment.ts";

export type Cancelled = {
  paymentId: string;
  cancelledAt: Date;
  cancelledReason: "cancelled_by_user" | "cancelled_by_merchant";
};

/** The caller that cancels: an account that is authenticated by a key, or else the requester of the options. */
export type Canceller = { account?: { id: string; actor: AuditActor } | undefined; requester: Requester };

/**
 * Cancels a payment that still awaits its buyer. The guarded move decides the race with a valid confirm and with the
 * deadline. Repeatable: a payment that is cancelled already returns its first cancellation.
 *
 * The payment's own account may always cancel. Any other caller may cancel only as the single wallet instance or
 * checkout session that has requested the payment's options, while no attempt waits, and if the account has not
 * disabled it. The guard checks this as well.
 *
 * Refuses with `payment_not_found`, and with `invalid_state` once the payment is being paid or has ended, or when the
 * caller may not cancel it.
 * A cancellation by the payment's own account is recorded in the audit log.
 */
export async function cancelPayment(
  deps: PaymentDeps,
  query: PaymentQuery,
  reason: Cancelled["cancelledReason"],
  by: Canceller,
): Promise<Result<Cancelled>> {
  const before = await findPayment(deps.db, query);
  if (!before) return refuse("payment_not_found", "no such payment");
  const account = by.account?.id === before.account_id ? by.account : undefined;
  const limited = account ? undefined : by.requester;
  if (before.state === "requires_action") {
    const set = { due_at: null, cancelled_reason: reason };
    const where = limited && isCancellable(limited);
    const at = deps.now();
    const move = { ids: [before.id], from: "requires_action", to: "cancelled", at, set, where } as const;
    const isMoved = await inTransaction(deps.db, async (db) => {
      if ((await moveRows(db, "payment", move)).length === 0) return false;
      const entry = { action: "payment.cancelled", subject: before.id, at };
      const [from, to] = [{ state: "requires_action" }, { state: "cancelled" }];
      if (account) await insertAuditEntries(db, [{ ...entry, actor: account.actor, before: from, after: to }]);
      return true;
    });
    if (isMoved) {
      deps.metrics.paymentTransitions.inc({ mode: before.mode, from: "requires_action", to: "cancelled" });
      await deps.publishPaymentChanges([before.id]);
    }
  }
  const now = (await findPayment(deps.db, query)) ?? before;
  if (limited && now.state === "requires_action")
    return refuse("invalid_state", await findCancelObstacle(deps.db, now, limited));
  if (now.state !== "cancelled" || !now.cancelled_reason) return refuse("invalid_state", `the payment is ${now.state}`);
  return done({ paymentId: now.id, cancelledAt: now.updated_at, cancelledReason: now.cancelled_reason });
}
