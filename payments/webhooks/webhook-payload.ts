import { getAddress, isAddress } from "viem";
import { parseAssetId } from "../../chains/caip.ts";
import type { DueEvent } from "../../db/queries/webhook-deliveries.ts";

/** Version of the payload format (wire contract, part 10). Within a version, members are only added. */
export const API_VERSION = "2026-05-18";
/** The chain of simulated payments: `chain_caip2` is never null. */
const SIMULATED_CHAIN = "test:simulated";

/**
 * Returns the body of an event: a snapshot of the payment at the time of the event. All of its values were written by
 * then and never change, so every delivery attempt sends the same bytes.
 */
export function toPayload(event: DueEvent): string {
  const stage = event.type.slice("payment.".length);
  const when = (reached: boolean, member: object) => (reached ? member : null);
  const succeeded = stage === "succeeded" || stage === "settled";
  return JSON.stringify({
    id: event.id,
    type: event.type,
    api_version: API_VERSION,
    created_at: event.at,
    data: {
      payment_id: event.payment_id,
      merchant_id: event.merchant_id,
      live: event.mode === "live",
      payment_state_version: event.state_version,
      reference_id: event.reference_id,
      status: statusOf(stage),
      amount: { unit: event.unit, value: String(event.value) },
      created_at: event.created_at,
      expires_at: event.expires_at,
      processing: stage === "created" ? null : toProcessing(event),
      success: when(succeeded, { succeeded_at: event.succeeded_at, tx_id: event.tx_id }),
      failed: when(stage === "failed", { failed_at: event.at, failure_reason: event.failure_code }),
      cancelled: when(stage === "cancelled", { cancelled_at: event.at, cancellation_reason: event.cancelled_reason }),
      expired: when(stage === "expired", { expired_at: event.at }),
      settled: when(stage === "settled", {
        settled_at: event.at,
        tx_id: event.settled_tx_id,
        amount: tokenAmount(event.settled_asset, event.settled_amount),
      }),
    },
  });
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
function toProcessing(event: DueEvent): object | null {
  if (event.processing_at === null) return null;
  const amount = tokenAmount(event.asset, event.amount) ?? { unit: event.unit, value: String(event.value) };
  const chain = parseAssetId(event.asset ?? "")?.chain ?? SIMULATED_CHAIN;
  return {
    processing_at: event.processing_at,
    option_amount: amount,
    fee: toFee(event),
    settlement_amount: tokenAmount(event.owed_asset, event.owed_amount) ?? {
      ...amount,
      value: String(BigInt(amount.value) - event.fee),
    },
    buyer_caip10: event.payer === null ? null : `${chain}:${spellAddress(event.payer)}`,
    chain_caip2: chain,
  };
}

/** Returns the fee; null without one. `percent` is the rate that the percentage was calculated with. */
function toFee({ asset, amount, fee, fee_fixed: feeFixed, fee_basis_points: feeBasisPoints }: DueEvent): object | null {
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

/** Returns an address in one spelling, because the wallet's spelling may differ between requests. */
function spellAddress(address: string): string {
  return isAddress(address) ? getAddress(address) : address;
}
