import { Counter, collectDefaultMetrics, Gauge, Histogram, type Registry } from "prom-client";
import project from "../package.json" with { type: "json" };

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Every metric of the service, made on the registry that is handed in (a test hands in its own).
 * Names carry base units and the prefix `pay_`; labels come from closed lists, never ids, addresses or URLs.
 * Gauges that describe the whole system are exported by every worker and are to be read with `max by`.
 */
export function createMetrics(registry: Registry, role: "api" | "worker" | "bull-board") {
  const registers = [registry];
  registry.setDefaultLabels({ role });
  collectDefaultMetrics({ register: registry });
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter({ name, help, labelNames: [...labelNames], registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge({ name, help, labelNames: [...labelNames], registers });
  const histogram = <L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]) =>
    new Histogram({ name, help, labelNames: [...labelNames], buckets, registers });

  const build = gauge("pay_build_info", "Always 1; the version is in the label", ["version"]);
  build.set({ version: project.version }, 1);

  return {
    build,

    /** Jobs */
    jobs: counter("pay_jobs_total", "Jobs that ended, by queue and outcome", ["queue", "outcome"]),
    jobSeconds: histogram(
      "pay_job_duration_seconds",
      "Time inside one job handler",
      ["queue", "outcome"],
      [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    ),
    jobWaitSeconds: histogram(
      "pay_job_wait_seconds",
      "Time from a job's due time to its start",
      ["queue"],
      [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
    ),
    queueJobs: gauge("pay_queue_jobs", "Jobs in a queue, by state (whole system: read with max by)", [
      "queue",
      "state",
    ]),
    queueOldestSeconds: gauge(
      "pay_queue_oldest_job_age_seconds",
      "How long the oldest row has waited for its job, by queue, from Postgres (whole system: read with max by)",
      ["queue"],
    ),
    sweepFinds: counter("pay_sweep_finds_total", "Rows whose job the sweep had to ring again", ["queue"]),
    sweepLastRun: gauge("pay_sweep_last_run_timestamp_seconds", "When this process last ran a sweep"),
    ringFailures: counter(
      "pay_ring_failures_total",
      "Jobs that could not be put on a queue (the sweep rings them later)",
      ["queue"],
    ),

    /** Payments and money */
    paymentMoves: counter("pay_payment_moves_total", "Payments that changed state", ["mode", "from", "to"]),
    confirmToSucceeded: histogram(
      "pay_confirm_to_succeeded_seconds",
      "From the accepted confirm to succeeded, live payments",
      ["chain"],
      [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 900, 1800],
    ),
    attempts: counter("pay_attempts_total", "Confirms that were judged, by outcome", ["outcome"]),
    settlementMoves: counter("pay_settlement_moves_total", "Settlements that changed state", ["mode", "from", "to"]),
    reconcileDifference: gauge(
      "pay_reconcile_difference",
      "What the books and the chain differ by, minor units, all accounts of an asset together (whole system: read with max by)",
      ["chain", "asset"],
    ),
    reconcileAgeSeconds: gauge(
      "pay_reconcile_age_seconds",
      "Time since the books were last compared with the chain (whole system: read with max by)",
      ["chain"],
    ),
    failedBookings: gauge(
      "pay_failed_bookings",
      "Rows that could not be booked and are kept apart (whole system: read with max by)",
      ["chain"],
    ),
    stockShort: counter(
      "pay_stock_short_total",
      "Times a payout in another asset than the buyer's had to wait because the treasury has too little of it",
      ["chain", "asset"],
    ),
    payoutsBlocked: gauge(
      "pay_payouts_blocked",
      "Merchants and assets whose settlements or refunds wait for an obstacle to go away (whole system: read with max by)",
      ["kind", "obstacle"],
    ),
    webhookDeliveries: counter("pay_webhook_deliveries_total", "Attempts to deliver a webhook event, by outcome", [
      "outcome",
    ]),
    webhookOldestSeconds: gauge(
      "pay_webhook_oldest_pending_age_seconds",
      "Age of the oldest webhook event that its endpoint has not taken (whole system: read with max by)",
    ),

    /** Transfers, lanes, chains */
    transferMoves: counter("pay_transfer_moves_total", "Transfers that changed state", [
      "chain",
      "purpose",
      "from",
      "to",
    ]),
    payoutsHeld: gauge(
      "pay_payouts_held",
      "Payouts and refunds that would fail and are held, after four tries (whole system: read with max by)",
      ["chain"],
    ),
    transfers: gauge("pay_transfers", "Unfinished transfers by state (whole system: read with max by)", [
      "chain",
      "state",
    ]),
    batchSize: histogram(
      "pay_batch_transfers",
      "Transfers carried by one transaction",
      ["chain"],
      [1, 2, 5, 10, 20, 50, 100],
    ),
    gasPerTransfer: histogram(
      "pay_transfer_gas",
      "Gas used per transfer, batches divided",
      ["chain"],
      [40_000, 60_000, 70_000, 80_000, 90_000, 100_000, 120_000, 160_000],
    ),
    gasWithoutTransfer: counter(
      "pay_gas_without_transfer_total",
      "Gas used by transactions for transfers that they did not make",
      ["chain"],
    ),
    laneNextNonce: gauge("pay_lane_next_nonce", "Nonce the lane will use next (whole system: read with max by)", [
      "chain",
      "lane",
    ]),
    laneInFlight: gauge(
      "pay_lane_transactions_in_flight",
      "Nonces taken and not yet included (whole system: read with max by)",
      ["chain", "lane"],
    ),
    laneOldestSeconds: gauge(
      "pay_lane_lowest_unconfirmed_age_seconds",
      "Age of the lane's lowest nonce that is not included (whole system: read with max by)",
      ["chain", "lane"],
    ),
    laneMaxFee: gauge(
      "pay_lane_max_fee_per_gas_wei",
      "Fee cap of the lane's newest transaction (whole system: read with max by)",
      ["chain", "lane"],
    ),
    laneFeeCeiling: gauge(
      "pay_lane_fee_ceiling_wei",
      "Configured ceiling of the fee cap; on Solana lamports per compute unit",
      ["chain"],
    ),
    laneGasBalance: gauge(
      "pay_lane_gas_balance_wei",
      "Native balance of the lane (on Solana lamports), looked at once a minute",
      ["chain", "lane"],
    ),
    laneHolds: gauge(
      "pay_lane_held",
      "1 while a lane has something to send and the fee ceiling forbids it (whole system: read with max by)",
      ["chain", "lane"],
    ),
    screeningFailures: counter(
      "pay_screening_failures_total",
      "Times that a provider of screening could not say who may be served",
      ["chain", "provider"],
    ),
    transactions: counter("pay_transactions_total", "Transactions by what became of them", ["chain", "state"]),
    headBlock: gauge("pay_chain_head_block", "Newest block an endpoint has told us of", ["chain"]),
    cursorBlock: gauge("pay_chain_cursor_block", "Newest block the watcher has read (whole system: read with max by)", [
      "chain",
    ]),
    cursorLagSeconds: gauge(
      "pay_chain_cursor_lag_seconds",
      "Time since a watcher last stood at the head (whole system: read with max by)",
      ["chain"],
    ),
    clockSkew: gauge(
      "pay_clock_skew_seconds",
      "How far a clock is ahead of another: this machine's of Postgres' (against postgres), Postgres' of the newest block of a chain (against its CAIP-2 id)",
      ["against"],
    ),
    historyUnread: gauge(
      "pay_history_unread",
      "Transactions of the treasury's history that wait to be read (whole system: read with max by)",
      ["chain"],
    ),
    historyUnreadable: gauge(
      "pay_history_unreadable",
      "Those of them that could not be read or recorded for minutes (whole system: read with max by)",
      ["chain"],
    ),
    reorgs: counter("pay_chain_reorgs_total", "Reorgs followed", ["chain"]),
    reorgDepth: gauge("pay_chain_reorg_depth_blocks", "Depth of the newest reorg", ["chain"]),
    chainEndpoints: gauge(
      "pay_chain_endpoints",
      "RPC endpoints of a chain in the networks file; with one, its word alone decides what is final",
      ["chain"],
    ),
    endpointDisagreements: counter(
      "pay_endpoint_disagreements_total",
      "Times that an endpoint did not show in a final block what another one had shown, or showed another block",
      ["chain", "endpoint"],
    ),
    agreementWaits: counter(
      "pay_agreement_waits_total",
      "Passes of a watcher that left a large movement unbooked because two endpoints did not agree on it",
      ["chain"],
    ),
    unwitnessedReads: counter(
      "pay_unwitnessed_reads_total",
      "Passes of a watcher that confirmed blocks on the word of the endpoint that had read them first, because no other one answered in time",
      ["chain"],
    ),
    rpcCalls: counter("pay_rpc_calls_total", "RPC calls by endpoint, method and outcome", [
      "chain",
      "endpoint",
      "method",
      "outcome",
    ]),
    rpcSeconds: histogram(
      "pay_rpc_duration_seconds",
      "RPC call time",
      ["chain", "method"],
      [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    ),

    /** Ingress */
    httpRequests: counter("pay_http_requests_total", "HTTP answers by route and status", ["route", "method", "status"]),
    httpSeconds: histogram(
      "pay_http_request_duration_seconds",
      "HTTP answer time without the hold of a long poll",
      ["route", "method"],
      [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    ),
    refusedLogins: counter("pay_board_refused_logins_total", "Logins to bull-board that were wrong or came too often"),
    rateLimited: counter("pay_rate_limited_total", "Requests refused because there were too many", ["by"]),
    longPolls: gauge("pay_long_polls_waiting", "Long polls held now by this process"),
    longPollEnds: counter("pay_long_polls_total", "Long polls that ended, by reason", ["reason"]),
    pageDifferences: gauge(
      "pay_page_differences",
      "What a buyers' page differed by from its release, when this process last looked at it",
      ["page"],
    ),
    pageLooked: gauge(
      "pay_page_looked_timestamp_seconds",
      "When this process last looked at a buyers' page as it is served; its start, before the first time",
      ["page"],
    ),

    /** Platform */
    databaseSteppedBack: gauge(
      "pay_database_stepped_back_timestamp_seconds",
      "When the database was last found to have stepped back in time; absent when it never was (whole system: read with max by)",
    ),
    chainUnread: gauge(
      "pay_chain_unread",
      "1 while a chain has not been read again since the database stepped back in time, and nothing is signed on it (whole system: read with max by)",
      ["chain"],
    ),
    sqlStatements: counter("pay_sql_statements_total", "SQL statements sent", ["outcome"]),
    sqlSeconds: histogram(
      "pay_sql_statement_duration_seconds",
      "SQL statement time",
      [],
      [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5],
    ),
    poolConnections: gauge("pay_db_pool_connections", "Connections of this process's pool", ["state"]),
  };
}
