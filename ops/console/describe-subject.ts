import { findReportedPayment } from "../../db/queries/payment-reports.ts";
import { listRefunds } from "../../db/queries/refunds.ts";
import { findException } from "../../payments/accounting/resolve-exceptions.ts";
import type { ActionName } from "../../payments/operators/requested-actions.ts";
import { findRefundView, listRefundViews } from "../../payments/payouts/find-refunds.ts";
import { computeLeft } from "../../payments/payouts/refund-payment.ts";
import { type Html, html } from "../../runtime/html.ts";
import { readAmountFormatter } from "./amount-formatter.ts";
import type { ConsoleDeps } from "./console-deps.ts";
import { showRefunds } from "./result-tables.ts";
import { facts } from "./values.ts";

/** Most refunds that the page of a refund lists. */
const MOST_REFUNDS = 200;

/**
 * What the page of an action shows of its subject, and what of that its form sends back, so that the action is refused when it has
 * changed since.
 */
export type SubjectDescription = { sent: Readonly<Record<string, string>>; shown: Html | undefined };

/** Describes the subject of an action for the operator who confirms it. */
export async function describeSubject(
  deps: ConsoleDeps,
  action: ActionName,
  subject: string,
): Promise<SubjectDescription> {
  if (action === "refund-payment") return describePayment(deps, subject);
  if (action === "withdraw-refund") return { sent: {}, shown: await showRefund(deps, subject) };
  if (action.endsWith("-exception")) return { sent: {}, shown: await showException(deps, subject) };
  return { sent: {}, shown: undefined };
}

async function describePayment(deps: ConsoleDeps, paymentId: string): Promise<SubjectDescription> {
  const { db } = deps;
  const payment = await findReportedPayment(db, paymentId);
  if (!payment) return { sent: { left: "0" }, shown: html`<p class="warning">There is no such payment.</p>` };
  const amounts = await readAmountFormatter(deps);
  const left = computeLeft(payment.paid_amount, await listRefunds(db, paymentId));
  const refunds = await listRefundViews(deps, { paymentId, limit: MOST_REFUNDS });
  const shown = html`${facts({
    "Left to refund": amounts.of(left, payment.paid_asset),
    "Left to refund (minor units)": left,
    Paid: amounts.of(payment.paid_amount, payment.paid_asset),
    Asset: payment.paid_asset,
    Receiver: payment.payer,
    Mode: payment.mode,
    Merchant: payment.merchant_id,
  })}${showRefunds(amounts, refunds.ok ? refunds.value.items : [])}`;
  return { sent: { left: String(left) }, shown };
}

async function showRefund(deps: ConsoleDeps, refundId: string): Promise<Html> {
  const found = await findRefundView(deps, { refundId });
  if (!found.ok) return html`<p class="warning">There is no such refund.</p>`;
  const { status, amount, asset, receiver, paymentId } = found.value;
  return facts({
    Status: status,
    Amount: (await readAmountFormatter(deps)).of(amount, asset),
    Asset: asset,
    Receiver: receiver,
    Payment: paymentId,
  });
}

async function showException(deps: ConsoleDeps, id: string): Promise<Html> {
  const found = /^\d{1,15}$/.test(id) ? await findException(deps, Number(id)) : undefined;
  if (!found) return html`<p class="warning">There is no such open exception.</p>`;
  const { kind, amount, asset, payer, txHash, paymentId } = found;
  return facts({
    Kind: kind,
    Amount: (await readAmountFormatter(deps)).of(amount, asset),
    Asset: asset,
    Sender: payer,
    Transaction: txHash,
    Payment: paymentId,
  });
}
