import type { MetricFactory } from "./metric-factory.ts";

/** Returns the metrics of transfers, transactions and lanes. */
export const createTransferMetrics = ({ counter, gauge, histogram, systemGauge }: MetricFactory) => ({
  transferTransitions: counter("pay_transfer_transitions_total", "State transitions of transfers", [
    "chain",
    "purpose",
    "from",
    "to",
  ]),
  transfers: systemGauge("pay_transfers", "Unfinished transfers, by state", ["chain", "state"]),
  payoutsHeld: systemGauge(
    "pay_payouts_held",
    "Payouts and refunds that failed four simulations in a row and are held",
    ["chain"],
  ),
  paymentsHeld: systemGauge(
    "pay_payments_held",
    "Payments that failed four simulations in a row before they were sent, and are held",
    ["chain"],
  ),
  screeningFailures: counter("pay_screening_failures_total", "Screening requests that a provider could not answer", [
    "chain",
    "provider",
  ]),
  transactions: counter("pay_transactions_total", "Transactions, by resulting state", ["chain", "state"]),
  batchSize: histogram("pay_batch_transfers", "Transfers in one transaction", ["chain"], [1, 2, 5, 10, 20, 50, 100]),
  gasPerTransfer: histogram(
    "pay_transfer_gas",
    "Gas used per transfer; the gas of a batch is divided among its transfers",
    ["chain"],
    [40_000, 60_000, 70_000, 80_000, 90_000, 100_000, 120_000, 160_000],
  ),
  gasWithoutTransfer: counter(
    "pay_gas_without_transfer_total",
    "Gas used by included transactions for transfers that they did not make, and by contract wallets beyond their share",
    ["chain"],
  ),
  laneNextNonce: systemGauge("pay_lane_next_nonce", "Next nonce of the lane", ["chain", "lane"]),
  laneAccountNonce: gauge(
    "pay_lane_account_nonce",
    "Next nonce of the lane's account on its chain, read once a minute; absent on Solana",
    ["chain", "lane"],
  ),
  laneInFlight: systemGauge(
    "pay_lane_transactions_in_flight",
    "Nonces of the lane that are assigned and not yet included",
    ["chain", "lane"],
  ),
  laneOldestSeconds: systemGauge(
    "pay_lane_lowest_unconfirmed_age_seconds",
    "Age of the lane's lowest nonce that is not included",
    ["chain", "lane"],
  ),
  laneMaxFee: systemGauge("pay_lane_max_fee_per_gas_wei", "Fee cap of the lane's newest transaction", [
    "chain",
    "lane",
  ]),
  laneFeeCeiling: gauge(
    "pay_lane_fee_ceiling_wei",
    "Configured ceiling of the fee cap (on Solana: lamports per compute unit)",
    ["chain"],
  ),
  laneGasBalance: gauge(
    "pay_lane_gas_balance_wei",
    "Native balance of the lane (on Solana: lamports), read once a minute",
    ["chain", "lane"],
  ),
  nativePrice: gauge(
    "pay_native_price",
    "Price of one minor unit of the coin that pays for a chain's gas (one wei, one lamport), by its feed in the networks file",
    ["chain", "currency"],
  ),
  laneAtFeeCeiling: systemGauge(
    "pay_lane_at_fee_ceiling",
    "1 while a lane sends nothing because the required fee exceeds the ceiling",
    ["chain", "lane"],
  ),
});
