import { sql } from "kysely";
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
    type: string;
    state: string;
    attemptsMade: number;
    lastOutcome: string | null;
    dueAt: Date | null;
  }[];
};

/** Returns the report of a payment; undefined when there is no such payment. */
export async function readPaymentReport(deps: { db: Db }, paymentId: string): Promise<PaymentReport | undefined> {
  const { db } = deps;
  const { rows } = await sql<PaymentReport["payment"]>`
    select p.id, p.state, p.mode, p.account_id as "accountId", p.merchant_id as "merchantId", p.reference_id as reference,
      p.value || ' ' || p.unit as amount, p.created_at as "createdAt", p.expires_at as "expiresAt", p.tx_id as "txId",
      (select min(created_at) from refund r where r.payment_id = p.id and r.state <> 'withdrawn') as "refundedAt", o.account as payer, o.amount || ' ' || o.asset as "paysWith"
    from payment p left join payment_option o on o.id = p.option_id
    where p.id = ${paymentId}`.execute(db);
  const [payment] = rows;
  if (!payment) return undefined;
  const { rows: attempts } = await sql<PaymentReport["attempts"][number]>`
    select id, state, refusal, created_at as "createdAt", due_at as "dueAt" from attempt
    where payment_id = ${paymentId} order by created_at`.execute(db);
  const { rows: transfers } = await sql<PaymentReport["transfers"][number]>`
    select t.id, t.purpose, t.state, t.amount, t.asset, t.payer as "from", t.receiver as "to", t.lane_id as lane,
      t.lane_nonce as nonce, t.retries, t.last_error as "lastError", t.hold_until as "heldUntil", t.due_at as "dueAt"
    from transfer t where t.purpose = 'payment' and t.payment_id = ${paymentId}
      or t.purpose = 'settlement' and t.settlement_id = (select settlement_id from payment where id = ${paymentId})
      or t.purpose = 'refund' and t.refund_id = any(select id from refund where payment_id = ${paymentId})
    order by t.created_at`.execute(db);
  const { rows: webhooks } = await sql<PaymentReport["webhooks"][number]>`
    select id, type, state, attempts_made as "attemptsMade", last_outcome as "lastOutcome", due_at as "dueAt" from webhook_delivery
    where payment_id = ${paymentId} order by at, id`.execute(db);
  return { payment, attempts, transfers, webhooks, ...(await listHistory(deps, paymentId)) };
}
