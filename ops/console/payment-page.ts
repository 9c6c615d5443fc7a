import type { OperatorRequestRow } from "../../db/queries/operator-requests.ts";
import type { PaymentReport } from "../../payments/maintenance/payment-report.ts";
import type { RefundView } from "../../payments/payouts/refund-views.ts";
import { type Html, html } from "../../runtime/html.ts";
import type { AmountFormatter } from "./amount-formatter.ts";
import type { ConsolePage } from "./console-page.ts";
import { showRequests } from "./request-page.ts";
import { showRefunds } from "./result-tables.ts";
import { facts, link, table } from "./values.ts";

/** Returns the page of one payment: what it is, what happened when, and what moved money. */
export function paymentPage(
  amounts: AmountFormatter,
  {
    report,
    refunds,
    requests,
  }: { report: PaymentReport; refunds: readonly RefundView[]; requests: readonly OperatorRequestRow[] },
  actions: Html,
): ConsolePage {
  const { payment } = report;
  const body = html`
    ${facts({
      State: payment.state,
      "Failure or reason": payment.failureCode ?? payment.cancelledReason,
      Mode: payment.mode,
      Account: payment.accountId,
      Merchant: link("merchants", payment.merchantId),
      "Payouts held since": payment.payoutsHeldSince,
      Reference: payment.reference,
      Amount: amounts.read(payment.amount),
      "Pays with": amounts.read(payment.paysWith),
      Paid: amounts.read(payment.paid),
      Fee: amounts.read(payment.fee),
      Payer: payment.payer,
      Transaction: payment.txId,
      Created: payment.createdAt,
      Expires: payment.expiresAt,
      "First refunded": payment.refundedAt,
    })}
    ${actions}
    ${timeline(report)}${attempts(report)}${transfers(amounts, report)}${transactions(report)}${payout(amounts, report)}
    ${showRefunds(amounts, refunds)}${ledger(amounts, report)}${webhooks(report)}${showRequests(requests)}`;
  return { title: `Payment ${payment.id}`, body };
}

const timeline = ({ moves }: PaymentReport) =>
  table(
    "Timeline",
    ["At", "What", "From", "To", "Subject", "Detail"],
    moves.map(({ at, machine, from, to, subject, detail }) => [
      at,
      machine,
      from,
      to,
      subject,
      detail && JSON.stringify(detail),
    ]),
  );

const attempts = ({ attempts: rows }: PaymentReport) =>
  table(
    "Attempts",
    ["Attempt", "State", "Refused because", "Created", "Due"],
    rows.map((one) => [one.id, one.state, one.refusal, one.createdAt, one.dueAt]),
  );

const transfers = (amounts: AmountFormatter, { transfers: rows }: PaymentReport) =>
  table(
    "Transfers",
    [
      "Transfer",
      "Purpose",
      "State",
      "Amount",
      "Asset",
      "From",
      "To",
      "Lane",
      "Nonce",
      "Retries",
      "Last error",
      "Held until",
      "Due",
    ],
    rows.map((one) => [
      one.id,
      one.purpose,
      one.state,
      amounts.of(one.amount, one.asset),
      one.asset,
      one.from,
      one.to,
      one.lane,
      one.nonce,
      one.retries,
      one.lastError,
      one.heldUntil,
      one.dueAt,
    ]),
  );

const transactions = ({ transactions: rows }: PaymentReport) =>
  table(
    "Transactions",
    [
      "Hash",
      "State",
      "Lane",
      "Nonce",
      "Replacement",
      "Signed",
      "Block",
      "Gas used",
      "Fee (smallest unit of the chain's coin)",
    ],
    rows.map((one) => [
      one.hash,
      one.state,
      one.lane,
      one.nonce,
      one.replacement,
      one.signedAt,
      one.block,
      one.gasUsed,
      one.fee,
    ]),
  );

const payout = (amounts: AmountFormatter, { settlement }: PaymentReport) =>
  settlement
    ? html`<h2>Payout</h2>${facts({
        Settlement: settlement.id,
        State: settlement.state,
        Amount: amounts.of(settlement.amount, settlement.asset),
        Asset: settlement.asset,
        Destination: settlement.destination,
        Transaction: settlement.txHash,
        Paid: settlement.paidAt,
        "Blocked by": settlement.blockedBy,
      })}`
    : table("Payout", [], []);

const ledger = (amounts: AmountFormatter, { ledger: rows }: PaymentReport) =>
  table(
    "Ledger",
    ["At", "Booked as", "Account", "Asset", "Amount (a debit is positive)", "Transaction"],
    rows.map((one) => [one.at, one.kind, one.account, one.asset, amounts.of(one.amount, one.asset), one.txHash]),
  );

const webhooks = ({ webhooks: rows }: PaymentReport) =>
  table(
    "Webhooks",
    ["Event", "Type", "Endpoint", "State", "Attempts", "Last outcome", "Due"],
    rows.map((one) => [one.id, one.type, one.endpoint, one.state, one.attemptsMade, one.lastOutcome, one.dueAt]),
  );
