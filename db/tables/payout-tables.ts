import type { Generated } from "kysely";
import type { RefundState, SettlementState } from "../states.ts";
import type { Due, Mode } from "./column-types.ts";

export type PayoutTables = {
  settlement: {
    id: string;
    merchant_id: string;
    mode: Mode;
    asset: string;
    number: number;
    amount: bigint;
    destination: string | null;
    state: SettlementState;
    created_at: Date;
    /** When it stopped accumulating and became owed. */
    closed_at: Date | null;
    /** It was paid in other assets, so it is paid out of the treasury's inventory of this asset. */
    converted: Generated<boolean>;
    /** The transaction of a settlement that a buyer paid directly; the ledger has the transactions of payouts. */
    tx_hash: string | null;
    paid_at: Date | null;
  } & Due;
  /** What a refund deducted from a payment's share of a settlement before its payout, minor units of the settlement's asset. */
  settlement_deduction: { refund_id: string; settlement_id: string; payment_id: string; amount: bigint };
  /** A refund of a payment (`payment_id`) to its payer, or of an exception (`exception_id`) to the sender of the money. */
  refund: {
    id: string;
    payment_id: string | null;
    /** Counts the refunds of a payment; part of the natural key of its transfer. */
    number: number;
    /** The ledger group that booked the money as an exception. */
    exception_id: number | null;
    /** A trigger sets these two from the payment; null for an exception. */
    account_id: Generated<string | null>;
    mode: Generated<Mode | null>;
    /** The merchant whose balance pays the refund; null for an exception. */
    merchant_id: string | null;
    asset: Generated<string>;
    amount: bigint;
    /** What the refund takes from the merchant's balance, when that is in another asset. */
    owed_asset: string | null;
    owed_amount: bigint | null;
    /** An address on the asset's chain; null for a payment without a payer (test mode). */
    receiver: string | null;
    state: RefundState;
    /** Why it is or was held: screening, or the issuer of its token, blocks the receiver. */
    held_reason: Generated<"screening" | "receiver_blocked" | null>;
    created_at: Date;
    /** When the state changed last. */
    updated_at: Date;
    /** The transaction that paid it. */
    tx_hash: string | null;
    paid_at: Date | null;
  } & Due;
  /**
   * Payouts of one kind that are paid from the same balance, on the chain where the money moves. Triggers write it when rows
   * become due. `blocked_by` is the obstacle that blocks all of them; `due_at` is then the time of the next check.
   */
  payout_queue: {
    kind: "settlement" | "refund";
    /** '' for a refund that belongs to no merchant. */
    merchant_id: string;
    asset: string;
    chain: string;
    blocked_by: string | null;
    blocked_at: Date | null;
    /** Incremented by every change that may remove an obstacle. */
    version: Generated<number>;
  } & Due;
};
