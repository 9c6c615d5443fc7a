import type { MetricFactory } from "./metric-factory.ts";

/** Returns the metrics of the watchers and of RPC endpoints. */
export const createChainMetrics = ({ counter, gauge, histogram, sampledGauge, systemGauge }: MetricFactory) => ({
  headBlock: gauge("pay_chain_head_block", "Newest block that an endpoint has reported", ["chain"]),
  headReadAt: gauge("pay_chain_head_read_timestamp_seconds", "When a watcher of this process last read the head", [
    "chain",
  ]),
  cursorBlock: systemGauge("pay_chain_cursor_block", "Newest block that the watcher has read", ["chain"]),
  cursorLagSeconds: systemGauge("pay_chain_cursor_lag_seconds", "Time since a watcher last reached the head", [
    "chain",
  ]),
  finalLagSeconds: systemGauge(
    "pay_chain_final_lag_seconds",
    "Blocks that the watcher has read and that are not final and booked, times the usual time between blocks",
    ["chain"],
  ),
  finalitySeconds: systemGauge(
    "pay_chain_finality_seconds",
    "Usual time from a block to its finality by the networks file, or its upper bound where the chain decides",
    ["chain"],
  ),
  clockSkew: gauge(
    "pay_clock_skew_seconds",
    'How far one clock is ahead of another: this host ahead of Postgres (against="postgres"), or Postgres ahead of the newest block of a chain (against=its CAIP-2 id)',
    ["against"],
  ),
  historyUnread: systemGauge(
    "pay_history_unread_transactions",
    "Transactions of the treasury's history that are not read yet",
    ["chain"],
  ),
  historyUnreadable: systemGauge(
    "pay_history_unreadable_transactions",
    "Transactions of the treasury's history that could not be read or recorded for minutes",
    ["chain"],
  ),
  historyListingAgeSeconds: systemGauge(
    "pay_history_listing_age_seconds",
    "Time since a listing of the treasury's history began that an endpoint has completed",
    ["chain"],
  ),
  reorgs: counter("pay_chain_reorgs_total", "Reorgs that the watcher has followed", ["chain"]),
  reorgDepth: gauge("pay_chain_reorg_depth_blocks", "Depth of the newest reorg", ["chain"]),
  finalReorgs: counter(
    "pay_chain_final_reorgs_total",
    "Reorgs that removed blocks at the depth of the chain's finality, on which success may have been reported",
    ["chain"],
  ),
  tokenUpgraded: gauge(
    "pay_token_upgraded",
    "1 while the code of a token differs from the code at the start of this process",
    ["chain", "asset"],
  ),
  tokenPaused: gauge("pay_token_paused", "1 while the issuer has paused a token", ["chain", "asset"]),
  treasuryBlocked: gauge("pay_treasury_blocked", "1 while the issuer of a token blocks the treasury", [
    "chain",
    "asset",
  ]),
  chainEndpoints: gauge(
    "pay_chain_endpoints",
    "RPC endpoints of a chain in the networks file; a single endpoint decides alone what is final",
    ["chain"],
  ),
  endpointDisagreements: counter(
    "pay_endpoint_disagreements_total",
    "Final blocks for which an endpoint returned less than, or something else than, the endpoint that was read first",
    ["chain", "endpoint"],
  ),
  priceDisagreements: counter(
    "pay_price_disagreements_total",
    "Readings of price feeds for which an endpoint returned another price or time than the endpoint that was read first, or than two others",
    ["chain", "endpoint"],
  ),
  pricesUnconfirmed: counter(
    "pay_prices_unconfirmed_total",
    "Prices that were not used because only one of several endpoints showed them, far from the last that two had shown",
    ["chain"],
  ),
  agreementWaits: counter(
    "pay_agreement_waits_total",
    "Watcher passes that left a large movement unbooked because no two endpoints agreed on it",
    ["chain"],
  ),
  singleEndpointConfirmations: counter(
    "pay_single_endpoint_confirmations_total",
    "Times that a watcher confirmed by one endpoint alone, because no second endpoint answered or reported the same as final in time",
    ["chain"],
  ),
  rpcCalls: counter("pay_rpc_calls_total", "RPC calls, by endpoint, method and outcome", [
    "chain",
    "endpoint",
    "method",
    "outcome",
  ]),
  endpointBehind: gauge(
    "pay_rpc_endpoint_behind_blocks",
    "Blocks that an endpoint is behind the highest endpoint of its chain, at the last comparison of this process",
    ["chain", "endpoint"],
  ),
  headSubscriptions: gauge(
    "pay_head_subscription",
    "1 while an endpoint announces new blocks to this process over its WebSocket, 0 while it does not",
    ["chain", "endpoint"],
  ),
  rpcBudget: sampledGauge(
    "pay_rpc_budget_remaining_calls",
    "Calls that the budget of an endpoint (callsPerMinute) allows this process now; absent without a budget",
    ["chain", "endpoint"],
  ),
  rpcBudgetShortages: counter(
    "pay_rpc_budget_shortages_total",
    "Calls that waited for the budget of an endpoint, or, for convenience, were refused",
    ["chain", "endpoint", "priority"],
  ),
  rpcSeconds: histogram(
    "pay_rpc_duration_seconds",
    "Duration of RPC calls",
    ["chain", "endpoint", "method"],
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  ),
});
