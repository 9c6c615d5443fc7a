import {
  findReportedPayment,
  listReportedAttempts,
  listReportedDeliveries,
  listReportedTransfers,
  type ReportedPayment,
  type ReportedTransfer,
} from "../../db/queries/payment-reports.ts";
import { listRemovedHistory } from "../../db/queries/retention.ts";
import type { Db } from "../../db/tables.ts";
import { type History, listHistory } from "./payment-history.ts";

/** Everything about one payment, for an operator who investigates it: its data, its state and its history. */
export type PaymentReport = History & {
  payment: {
    id: string;
    state: string;
    mode: string;
    accountId: string;
    merchantId: string;
    reference: string | null;
    amount: string;
    createdAt: Date;
    expiresAt: Date;
    txId: string | null;
    refundedAt: Date | null;
    payer: string | null;
    paysWith: string | null;
    /** What arrived, and the part of it that the operator keeps. */
    paid: string | null;
    fee: string | null;
    failureCode: string | null;
    cancelledReason: string | null;
    /** Since when payouts to the merchant are held. */
    payoutsHeldSince: Date | null;
  };
  attempts: { id: string; state: string; refusal: string | null; createdAt: Date; dueAt: Date | null }[];
  transfers: {
    id: string;
    purpose: string;
    state: string;
    amount: bigint;
    asset: string;
    from: string;
    to: string;
    lane: string | null;
    nonce: number | null;
    retries: number;
    lastError: string | null;
    heldUntil: Date | null;
    dueAt: Date | null;
  }[];
  webhooks: {
    id: string;
    endpoint: string;
    type: string;
    state: string;
    attemptsMade: number;
    lastOutcome: string | null;
    dueAt: Date | null;
  }[];
  /** The tables from which rows of the payment were removed after their retention. */
  removed: string[];
};

/** Returns the report of a payment; undefined when there is no such payment. */
export async function readPaymentReport({ db }: { db: Db }, paymentId: string): Promise<PaymentReport | undefined> {
  const payment = await findReportedPayment(db, paymentId);
  if (!payment) return undefined;
  const attempts = await listReportedAttempts(db, paymentId);
  const transfers = await listReportedTransfers(db, paymentId);
  const deliveries = await listReportedDeliveries(db, paymentId);
  return {
    payment: toPayment(payment),
    attempts: attempts.map(({ id, state, refusal, created_at: createdAt, due_at: dueAt }) => ({
      id,
      state,
      refusal,
      createdAt,
      dueAt,
    })),
    transfers: transfers.map(toTransfer),
    webhooks: deliveries.map((row) => ({
      id: row.event_id,
      endpoint: row.endpoint_id,
      type: row.type,
      state: row.state,
      attemptsMade: row.attempts_made,
      lastOutcome: row.last_outcome,
      dueAt: row.due_at,
    })),
    ...(await listHistory({ db }, paymentId)),
    removed: await listRemovedHistory(db, paymentId),
  };
}

function toPayment(row: ReportedPayment): PaymentReport["payment"] {
  return {
    id: row.id,
    state: row.state,
    mode: row.mode,
    accountId: row.account_id,
    merchantId: row.merchant_id,
    reference: row.reference_id,
    amount: `${row.value} ${row.unit}`,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    txId: row.tx_id,
    refundedAt: row.refunded_at,
    payer: row.payer,
    paysWith: row.option_asset === null ? null : `${row.option_amount} ${row.option_asset}`,
    paid: row.paid_asset === null ? null : `${row.paid_amount} ${row.paid_asset}`,
    fee: row.paid_asset === null ? null : `${row.fee} ${row.paid_asset}`,
    failureCode: row.failure_code,
    cancelledReason: row.cancelled_reason,
    payoutsHeldSince: row.payouts_held_at,
  };
}

function toTransfer(row: ReportedTransfer): PaymentReport["transfers"][number] {
  return {
    id: row.id,
    purpose: row.purpose,
    state: row.state,
    amount: row.amount,
    asset: row.asset,
    from: row.payer,
    to: row.receiver,
    lane: row.lane_id,
    nonce: row.lane_nonce,
    retries: row.retries,
    lastError: row.last_error,
    heldUntil: row.hold_until,
    dueAt: row.due_at,
  };
}
