import type { MetricFactory } from "./metric-factory.ts";

/** Returns the metrics of payments, payouts, the ledger and webhooks. */
export const createPaymentMetrics = ({ counter, histogram, systemGauge }: MetricFactory) => ({
  paymentTransitions: counter("pay_payment_transitions_total", "State transitions of payments", ["mode", "from", "to"]),
  confirmToSucceeded: histogram(
    "pay_confirm_to_succeeded_seconds",
    "Time from the accepted confirm to succeeded, live payments",
    ["chain"],
    [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 900, 1800],
  ),
  latePayments: counter(
    "pay_payments_late_total",
    "Live payments that succeeded later than the target of their chain: its usual time to finality and 60 s",
    ["chain"],
  ),
  overduePayments: systemGauge(
    "pay_payments_overdue",
    "Accepted live payments that have not ended and are beyond the target of their chain",
    ["chain"],
  ),
  attempts: counter("pay_attempts_total", "Verified confirms, by outcome and by how the buyer pays", [
    "outcome",
    "kind",
  ]),
  quoteContradictions: counter(
    "pay_quote_contradictions_total",
    "Quotes that were confirmed or paid and contradict their payments: nothing is paid by them",
    ["chain"],
  ),
  received: counter("pay_received_minor_units_total", "Money of live payments that have succeeded, minor units", [
    "chain",
    "asset",
  ]),
  oldestUnfinishedSeconds: systemGauge(
    "pay_oldest_unfinished_payment_age_seconds",
    "Age of the oldest live payment that was accepted and has not ended; 0 when there is none",
  ),
  ledgerBalance: systemGauge(
    "pay_ledger_balance_minor_units",
    "Balances of the ledger by kind of account, debits positive; what is owed to all merchants is one balance",
    ["account", "chain", "asset"],
  ),
  exceptionsOpen: systemGauge(
    "pay_exceptions_open",
    "Open exceptions, by the kind of the ledger group that books them: unmatched, exception, overpaid or dust",
    ["booking"],
  ),
  refundsUnfinished: systemGauge("pay_refunds_unfinished", "Refunds that have not been sent and confirmed, by state", [
    "state",
  ]),
  refundUncoveredSeconds: systemGauge(
    "pay_refund_uncovered_age_seconds",
    "Age of the oldest refund that its merchant's balance does not cover; 0 when there is none",
  ),
  settlementTransitions: counter("pay_settlement_transitions_total", "State transitions of settlements", [
    "mode",
    "from",
    "to",
  ]),
  payoutsBlocked: systemGauge(
    "pay_payouts_blocked",
    "Pairs of merchant and asset whose settlements or refunds are blocked, by obstacle",
    ["kind", "obstacle"],
  ),
  destinationChangesWaiting: systemGauge(
    "pay_destination_changes_waiting",
    "Requested changes of merchants' destinations that neither apply nor were rejected yet, by the last digits of their numbers",
    ["mode", "change"],
  ),
  operatorRequests: counter(
    "pay_operator_requests_total",
    "Requests of operators on the console that this worker has ended",
  ),
  ledgerDifference: systemGauge(
    "pay_ledger_difference_minor_units",
    "Difference between ledger and chain in minor units, summed over all accounts of an asset",
    ["chain", "asset"],
  ),
  ledgerReconciliationAgeSeconds: systemGauge(
    "pay_ledger_reconciliation_age_seconds",
    "Time since the ledger was last compared with the chain; without a comparison, since this process started",
    ["chain"],
  ),
  ledgerFindings: systemGauge(
    "pay_ledger_findings",
    "Rows of the ledger, of balances, settlements, refunds and transfers that contradict each other, by kind",
    ["kind"],
  ),
  ledgerCheckAgeSeconds: systemGauge(
    "pay_ledger_check_age_seconds",
    "Time since these rows were last compared with each other",
  ),
  failedBookings: systemGauge("pay_failed_bookings", "Rows that could not be booked and are set aside", ["chain"]),
  webhookDeliveries: counter("pay_webhook_deliveries_total", "Delivery attempts of webhook events, by outcome", [
    "outcome",
  ]),
  webhookOldestSeconds: systemGauge(
    "pay_webhook_oldest_pending_age_seconds",
    "Age of the oldest webhook event that its endpoint has not accepted",
  ),
});
