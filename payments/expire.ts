import { sql } from "kysely";
import { moveRows } from "../db/moves.ts";
import type { PaymentDeps } from "./deps.ts";

/**
 * Ends a payment whose deadline has passed while nobody paid. A payment that is being paid, or not due yet, stays as it
 * is: the guarded move settles the race with verification.
 */
export async function expirePayment(deps: PaymentDeps, paymentId: string): Promise<void> {
  const at = deps.now();
  const moved = await deps.db.transaction().execute((db) =>
    moveRows(db, "payment", {
      ids: [paymentId],
      from: "requires_action",
      to: "expired",
      at,
      where: sql`expires_at <= ${at}`,
      set: { due_at: null },
    }),
  );
  if (moved.length === 0) return;
  const payment = await deps.db
    .selectFrom("payment")
    .select("mode")
    .where("id", "=", paymentId)
    .executeTakeFirstOrThrow();
  deps.metrics.paymentMoves.inc({ mode: payment.mode, from: "requires_action", to: "expired" });
  await deps.announce([paymentId]);
}
