import { parseAssetId } from "../../chains/caip.ts";
import type { EventPayment } from "../../db/queries/event-objects.ts";
import type { EventRow } from "../../db/queries/webhook-events.ts";
import { spellAddress } from "../spell-address.ts";

/** The chain of simulated payments: `chain_caip2` is never null. */
const SIMULATED_CHAIN = "test:simulated";

/** Returns the data of a payment's event: the payment at the time of the event. Stages that it had not reached are null. */
export function toPaymentData(event: EventRow, payment: EventPayment): object {
  const stage = event.type.slice("payment.".length);
  const when = (reached: boolean, member: object) => (reached ? member : null);
  const succeeded = stage === "succeeded" || stage === "settled";
  return {
    payment_state_version: event.state_version,
    reference_id: payment.reference_id,
    description: payment.description,
    metadata: payment.metadata ?? {},
    status: statusOf(stage),
    amount: { unit: payment.unit, value: String(payment.value) },
    created_at: payment.created_at,
    expires_at: payment.expires_at,
    processing: stage === "created" ? null : toProcessing(stage, payment),
    success: when(succeeded, { succeeded_at: payment.succeeded_at, tx_id: payment.tx_id }),
    failed: when(stage === "failed", { failed_at: event.at, failure_reason: payment.failure_code }),
    cancelled: when(stage === "cancelled", { cancelled_at: event.at, cancellation_reason: payment.cancelled_reason }),
    expired: when(stage === "expired", { expired_at: event.at }),
    settled: when(stage === "settled", {
      settled_at: event.at,
      tx_id: payment.settled_tx_id,
      amount: tokenAmount(payment.settled_asset, payment.settled_amount),
    }),
  };
}

/** Returns the payment status for an event. `settled` is not a status: a settled payment is `succeeded`. */
function statusOf(stage: string): string {
  if (stage === "created") return "requires_action";
  return stage === "settled" ? "succeeded" : stage;
}

/**
 * Returns the buyer's choice, and what the merchant receives: the amount less the operator's fee. A simulated test
 * payment has no buyer, and no asset before it succeeds.
 */
function toProcessing(stage: string, payment: EventPayment): object | null {
  if (payment.processing_at === null) return null;
  const simulated = stage === "succeeded" ? payment.paid_asset : null;
  const asset = payment.asset ?? simulated;
  const amount = tokenAmount(asset, payment.amount ?? payment.paid_amount) ?? {
    unit: payment.unit,
    value: String(payment.value),
  };
  const chain = parseAssetId(asset ?? "")?.chain ?? SIMULATED_CHAIN;
  return {
    processing_at: payment.processing_at,
    option_amount: amount,
    fee: toFee(payment),
    settlement_amount: tokenAmount(payment.owed_asset, payment.owed_amount) ?? {
      ...amount,
      value: String(BigInt(amount.value) - payment.fee),
    },
    buyer_caip10: payment.payer === null ? null : `${chain}:${spellAddress(payment.payer)}`,
    chain_caip2: chain,
  };
}

/** Returns the fee; null without one. `percent` is the rate that the percentage was calculated with. */
function toFee({
  asset,
  amount,
  fee,
  fee_fixed: feeFixed,
  fee_basis_points: feeBasisPoints,
}: EventPayment): object | null {
  if (asset === null || fee === 0n) return null;
  const part = (value: bigint) => tokenAmount(asset, value);
  return {
    kind: feeBasisPoints === 0 ? "fixed" : feeFixed === 0n ? "percent" : "percent_and_fixed",
    base_amount: part(amount ?? 0n),
    percent: { numerator: feeBasisPoints, denominator: 10_000 },
    percent_amount: part(fee - feeFixed),
    fixed_amount: part(feeFixed),
    total_amount: part(fee),
  };
}

function tokenAmount(asset: string | null, amount: bigint | null): { unit: string; value: string } | null {
  return asset === null || amount === null ? null : { unit: `caip19/${asset}`, value: String(amount) };
}
