import type { EventRefund } from "../../db/queries/event-objects.ts";
import type { EventRow } from "../../db/queries/webhook-events.ts";
import type { RefundState } from "../../db/states.ts";
import { toRefundReason, toRefundReceiver, toRefundStatus, toRefundTxId } from "../payouts/refund-views.ts";

/** The state that each event reports. A refund that is only recorded is `marked` from its creation on, as its response says. */
const states = {
  "refund.created": "due",
  "refund.held": "held",
  "refund.succeeded": "paid",
  "refund.failed": "withdrawn",
} as const satisfies Record<string, RefundState>;

/**
 * Returns the data of an event about a refund: the refund at the time of the event. Its values were written by then. Only the
 * amount and the receiver can change, when the chain shows after a restore of the database that another amount was sent.
 */
export function toRefundData({ type, at, state_version: version }: EventRow, refund: EventRefund): object {
  const isRecordOnly = refund.state === "marked";
  const reported = Object.entries(states).find(([name]) => name === type)?.[1] ?? "due";
  const state = isRecordOnly ? "marked" : reported;
  const status = toRefundStatus(state);
  const reason = toRefundReason(state, refund);
  return {
    refund_state_version: version,
    payment_id: refund.payment_id,
    reference_id: refund.reference_id,
    status,
    reason,
    amount: { unit: `caip19/${refund.asset}`, value: String(refund.amount) },
    receiver_caip10: toRefundReceiver(refund),
    is_record_only: isRecordOnly,
    created_at: refund.created_at,
    held: status === "held" ? { held_at: at, reason } : null,
    success: status === "succeeded" ? { succeeded_at: at, tx_id: toRefundTxId({ ...refund, state }) } : null,
    failed: status === "failed" ? { failed_at: at, reason } : null,
  };
}
