import { getAddress, isAddress } from "viem";
import { parseAssetId } from "../chains/caip.ts";
import type { DueEvent } from "../db/webhooks.ts";

/** The form of the payload (wire contract, part 10). Within it, members are only ever added. */
const API_VERSION = "2026-05-18";
/** The member is never null in the public form. */
const SIMULATED_CHAIN = "test:simulated";

/**
 * The body of an event: a full snapshot of the payment as it stood at that move, whatever has become of it since.
 * Everything in it was written with that move or before and never changes, so every attempt sends the same bytes.
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
      payment_id: event.paymentId,
      merchant_id: event.merchantId,
      live: event.mode === "live",
      payment_state_version: event.stateVersion,
      reference_id: event.referenceId,
      status: statusOf(stage),
      amount: { unit: event.unit, value: String(event.value) },
      created_at: event.createdAt,
      expires_at: event.expiresAt,
      processing: stage === "created" ? null : toProcessing(event),
      success: when(succeeded, { succeeded_at: event.succeededAt, tx_id: event.txId }),
      failed: when(stage === "failed", { failed_at: event.at, failure_reason: event.failureCode }),
      cancelled: when(stage === "cancelled", { cancelled_at: event.at, cancellation_reason: event.cancelledReason }),
      expired: when(stage === "expired", { expired_at: event.at }),
      settled: when(stage === "settled", {
        settled_at: event.at,
        tx_id: event.settledTxId,
        amount: tokenAmount(event.settledAsset, event.settledAmount),
      }),
    },
  });
}

/** There is no status `settled`: being paid out is a stage of a payment that has succeeded. */
function statusOf(stage: string): string {
  if (stage === "created") return "requires_action";
  return stage === "settled" ? "succeeded" : stage;
}

/**
 * What the buyer chose, and what the merchant is to receive of it: all but the operator's fee. A test payment that is driven
 * by hand has no buyer, and until it has succeeded no asset either.
 */
function toProcessing(event: DueEvent): object | null {
  if (event.processingAt === null) return null;
  const amount = tokenAmount(event.asset, event.amount) ?? { unit: event.unit, value: String(event.value) };
  const chain = parseAssetId(event.asset ?? "")?.chain ?? SIMULATED_CHAIN;
  return {
    processing_at: event.processingAt,
    option_amount: amount,
    fee: toFee(event),
    settlement_amount: tokenAmount(event.owedAsset, event.owedAmount) ?? {
      ...amount,
      value: String(BigInt(amount.value) - event.fee),
    },
    buyer_caip10: event.payer === null ? null : `${chain}:${spellAddress(event.payer)}`,
    chain_caip2: chain,
  };
}

/** Null where none is taken. `percent` says by what the percentage was reckoned. */
function toFee({ asset, amount, fee, feeFixed, feePoints }: DueEvent): object | null {
  if (asset === null || fee === 0n) return null;
  const part = (value: bigint) => tokenAmount(asset, value);
  return {
    kind: feePoints === 0 ? "fixed" : feeFixed === 0n ? "percent" : "percent_and_fixed",
    base_amount: part(amount ?? 0n),
    percent: { numerator: feePoints, denominator: 10_000 },
    percent_amount: part(fee - feeFixed),
    fixed_amount: part(feeFixed),
    total_amount: part(fee),
  };
}

function tokenAmount(asset: string | null, amount: bigint | null): { unit: string; value: string } | null {
  return asset === null || amount === null ? null : { unit: `caip19/${asset}`, value: String(amount) };
}

/** Always in one spelling: how the wallet wrote its account may change from one question for options to the next. */
function spellAddress(address: string): string {
  return isAddress(address) ? getAddress(address) : address;
}
