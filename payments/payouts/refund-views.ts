import type { ReportedRefund } from "../../db/queries/refunds.ts";
import type { RefundState } from "../../db/states.ts";
import type { Mode } from "../../db/tables.ts";
import { memberNames } from "../../runtime/member-names.ts";
import { spellAddress } from "../spell-address.ts";
import { chainOf } from "./sign-payout.ts";

/**
 * The status of a refund, as merchants see it:
 * - `pending`: waits for the merchant's balance, for the treasury's inventory, or for its turn.
 * - `held`: screening rejects its receiver, or the token's issuer blocks it; only a withdrawal follows.
 * - `processing`: its transfer is signed and is sent until it is final.
 * - `succeeded`: the money has arrived, or the refund is only recorded (`isRecordOnly`).
 * - `failed`: was withdrawn, and nothing was sent.
 */
export const refundStatuses = ["pending", "held", "processing", "succeeded", "failed"] as const;
export type RefundStatus = (typeof refundStatuses)[number];

const shortReasons = ["balance_short", "inventory_short"] as const;
/**
 * Why a refund waits, is held or has failed:
 * - `balance_short`, `inventory_short`: what its merchant is owed does not cover it, or the treasury has too little of the asset. Refunds
 *   that wait behind such a one have its reason.
 * - `screening`: screening rejects its receiver.
 * - `receiver_blocked`: the token's issuer blocks its receiver.
 * - `withdrawn`: it was withdrawn, and nothing was sent.
 */
export const refundReasons = [...shortReasons, "screening", "receiver_blocked", "withdrawn"] as const;
type RefundReason = (typeof refundReasons)[number];

const statusOf: Record<RefundState, RefundStatus> = {
  due: "pending",
  held: "held",
  paying: "processing",
  paid: "succeeded",
  marked: "succeeded",
  withdrawn: "failed",
};

/** A refund as merchants and operators see it. `amount` is in minor units of `asset` (CAIP-19). */
export type RefundView = {
  refundId: string;
  /** These are null for a refund that returns money of an exception, which only operators see. */
  paymentId: string | null;
  merchantId: string | null;
  mode: Mode | null;
  referenceId: string | null;
  status: RefundStatus;
  reason: RefundReason | null;
  asset: string;
  amount: bigint;
  /** CAIP-10; null in test mode, where no wallet paid. */
  receiver: string | null;
  /** True when the service sends nothing: in test mode, and where the buyer paid the merchant directly. */
  isRecordOnly: boolean;
  /** The transaction that paid it; `test:` and the refund's id in test mode. */
  txId: string | null;
  createdAt: Date;
  updatedAt: Date;
  succeededAt: Date | null;
};

/** Returns the status of a refund in a state. */
export function toRefundStatus(state: RefundState): RefundStatus {
  return statusOf[state];
}

/** Returns the states of refunds that have one of these statuses. */
export function toRefundStates(statuses: readonly RefundStatus[]): RefundState[] {
  return memberNames(statusOf).filter((state) => statuses.includes(statusOf[state]));
}

/**
 * Returns why a refund in a state is held or has failed, or waits for money; null otherwise.
 * @param row.blocked_by the obstacle that blocks the queue in which it waits
 */
export function toRefundReason(
  state: RefundState,
  row: Pick<ReportedRefund, "held_reason"> & { blocked_by?: string | null },
): RefundReason | null {
  if (state === "due") return shortReasons.find((reason) => reason === row.blocked_by) ?? null;
  if (state === "held") return row.held_reason ?? "screening";
  return state === "withdrawn" ? "withdrawn" : null;
}

/** Returns the transaction of a refund. In test mode there is none on a chain, as for payments (specification, 2.2). */
export function toRefundTxId(row: Pick<ReportedRefund, "id" | "mode" | "state" | "tx_hash">): string | null {
  return row.mode === "test" && row.state === "marked" ? `test:${row.id}` : row.tx_hash;
}

/** Returns the account that a refund goes to (CAIP-10). */
export function toRefundReceiver({ asset, receiver }: Pick<ReportedRefund, "asset" | "receiver">): string | null {
  return receiver === null ? null : `${chainOf(asset)}:${spellAddress(receiver)}`;
}

/** Converts the row of a refund to its view. */
export function toRefundView(row: ReportedRefund): RefundView {
  const isRecordOnly = row.state === "marked";
  return {
    refundId: row.id,
    paymentId: row.payment_id,
    merchantId: row.merchant_id,
    mode: row.mode,
    referenceId: row.reference_id,
    status: statusOf[row.state],
    reason: toRefundReason(row.state, row),
    asset: row.asset,
    amount: row.amount,
    receiver: toRefundReceiver(row),
    isRecordOnly,
    txId: toRefundTxId(row),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    succeededAt: isRecordOnly ? row.created_at : row.paid_at,
  };
}
