import { type KeyParts, refundKey, returnKey } from "../../chains/natural-key.ts";
import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { findMovementPlace, type MovementPlace } from "../../db/queries/exceptions.ts";
import { insertGroups } from "../../db/queries/ledger-groups.ts";
import { wakeRefunds, wakeSettlements } from "../../db/queries/payout-queue.ts";
import {
  findReportedRefund,
  moveReturnToWithdrawn,
  moveToWithdrawn,
  type RefundOwner,
  type ReportedRefund,
} from "../../db/queries/refunds.ts";
import type { Db } from "../../db/tables.ts";
import type { Networks } from "../../runtime/networks/read-networks.ts";
import { returnWithdrawnGroup } from "../accounting/ledger-groups.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { type RefundView, toRefundStatus, toRefundView } from "./refund-views.ts";
import { findSentReason } from "./sent-before-restore.ts";

/**
 * Withdraws a refund that has not begun: it sends nothing, its amount can be refunded again, and the payouts behind it
 * continue. The guarded move decides the race with `beginRefunds`. Repeatable. The money of a withdrawn return, which is the
 * refund of an exception, is an open exception again, with a new id.
 *
 * After a restore, the database may show a refund as waiting although its money was sent. If it were withdrawn, a
 * further refund, which has another number and thus another nonce, would send the money twice. So the call refuses
 * until the chain has been reread, and when the chain shows the refund.
 *
 * Refuses with `refund_not_found` when there is no such refund, and with `invalid_state` once the refund has begun.
 * @param args.owner limits the call to refunds that a merchant's key reaches, which returns are not; unset for operators
 */
export async function withdrawRefund(
  deps: { db: Db; now: () => Date; networks: Pick<Networks, "deployment" | "chains"> },
  args: { actor: AuditActor; refundId: string; owner?: RefundOwner },
): Promise<Result<RefundView>> {
  return inTransaction(deps.db, async (db) => {
    const refund = await findReportedRefund(db, args, { lock: true });
    if (!refund) return refuse("refund_not_found", "no such refund");
    if (refund.state === "withdrawn") return done(toRefundView(refund));
    if (refund.state !== "due" && refund.state !== "held")
      return refuse("invalid_state", `the refund is ${toRefundStatus(refund.state)}`);
    const movement = refund.exception_id === null ? undefined : await findMovementPlace(db, refund.exception_id);
    const made = await findSentReason(deps, db, { asset: refund.asset, key: keyOf({ refund, movement }) });
    if (made) return refuse("invalid_state", made);
    // The refund may be the only obstacle of its queue, and of the settlements behind it. Lock order: queues, then what triggers of the
    // withdrawal lock, then the audit log (avoids deadlock): a trigger wakes the settlements too, at the commit.
    const queue = { merchantId: refund.merchant_id ?? "", asset: refund.owed_asset ?? refund.asset };
    await wakeRefunds(db, queue);
    await wakeSettlements(db, queue);
    // The row is locked, so its state cannot have changed.
    const at = deps.now();
    if (refund.exception_id !== null) {
      if (!movement) throw new Error(`the exception of ${refund.id} names no movement`);
      await moveReturnToWithdrawn(db, { id: refund.id, from: refund.state, at });
      await insertGroups(db, [returnWithdrawnGroup({ ...refund, exceptionId: refund.exception_id }, movement)], at);
    } else await moveToWithdrawn(db, { id: refund.id, at });
    const entry = { actor: args.actor, action: "refund.withdrawn", subject: refund.id, at };
    const [before, after] = [{ state: refund.state }, { state: "withdrawn" }];
    await insertAuditEntries(db, [{ ...entry, before, after }]);
    return done(toRefundView({ ...refund, state: "withdrawn", updated_at: at }));
  });
}

/** A refund, with the movement that it returns when it is the refund of an exception. */
type Withdrawn = { refund: ReportedRefund; movement: MovementPlace | undefined };

/** Returns the natural key of a refund; undefined when it names neither a movement nor a payment. */
function keyOf({ refund, movement }: Withdrawn): KeyParts | undefined {
  if (movement) return returnKey({ chain: movement.chain, txHash: movement.tx_hash, logIndex: movement.log_index });
  const { merchant_id: merchantId, payment_id: paymentId, number } = refund;
  return merchantId === null || paymentId === null ? undefined : refundKey({ merchantId, paymentId, number });
}
