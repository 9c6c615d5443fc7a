import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";
import { Registry } from "prom-client";
import { expect, onTestFinished, test, vi } from "vitest";
import { cancel, createPayment, getStatus, pay, waitFinal } from "../../../local/buyer-client.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { fundBuyer, mine, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { startFleet } from "../../support/fleet.ts";
import { type Sample, scrape, sumOf } from "../../support/scrape.ts";
import { waitFor } from "../../support/wait-for.ts";
import { registerEndpointIn, startWebhookEndpoint } from "../../support/webhook-endpoint.ts";

const GWEI = 1_000_000_000n;

const chain = await startChain({ lanes: 1 });
const fleet = await startFleet({ chain, workers: 1, ownUrl: true });
// This worker serves a queue without jobs, so it knows of the system only what it reads.
const idle = await fleet.addWorker({ WORKER_QUEUES: "submit-solana" });
const on = { chain: chain.id };

/** Scrapes both workers at about the same time. */
async function scrapeBoth() {
  const [busy, other] = await Promise.all([fleet.workers[0], idle].map((worker) => scrape(worker?.metricsUrl ?? "")));
  return { busy: busy ?? [], idle: other ?? [] };
}

/** Metrics that must be equal on both workers, and metrics that may differ by the moment of the scrape. */
const exact = [
  "pay_lane_transactions_in_flight",
  "pay_lane_next_nonce",
  "pay_lane_max_fee_per_gas_wei",
  "pay_lane_at_fee_ceiling",
  "pay_transfers",
  "pay_chain_cursor_block",
];
const aging = ["pay_lane_lowest_unconfirmed_age_seconds", "pay_chain_cursor_lag_seconds"];

async function compareMetrics(): Promise<void> {
  const both = await scrapeBoth();
  const series = (name: string, of: typeof both.busy) => of.filter((sample) => sample.name === name);
  for (const name of exact) {
    expect(series(name, both.idle), name).toEqual(series(name, both.busy));
    expect(series(name, both.idle).length, name).toBeGreaterThan(0);
  }
  for (const name of aging)
    expect(Math.abs((sumOf(both.idle, name, on) ?? -100) - (sumOf(both.busy, name, on) ?? 100)), name).toBeLessThan(5);
}
/**
 * A gauge whose read takes longer than three seconds, as on a slow machine, is absent from that scrape, so the scrape is
 * repeated.
 */
const repeated = { timeout: 60_000, interval: 250 };
const expectEqualMetrics = () => vi.waitFor(compareMetrics, repeated);

const readIdle = async (name: string, labels: Record<string, string> = {}) =>
  sumOf(await scrape(idle.metricsUrl), name, labels);
/** Expects of a metric what also holds in a later scrape. */
const expectIdle = (name: string, labels?: Record<string, string>) =>
  expect.poll(() => readIdle(name, labels), repeated);

test("an idle worker reports the same metrics of a lane as the worker that uses it", async () => {
  await chain.client.setAutomine(false);
  const id = await createPayment(fleet.shop, { referenceId: "waits", cents: "100" });
  await pay(fleet.shop, id, await fundBuyerMining(), chain.id);
  await waitFor(async () => (await readIdle("pay_lane_transactions_in_flight")) === 1, { within: 20_000 });
  await waitFor(async () => ((await readIdle("pay_lane_lowest_unconfirmed_age_seconds")) ?? 0) > 1, { within: 20_000 });
  await expectIdle("pay_oldest_unfinished_payment_age_seconds").toBeGreaterThan(0);
  await expectIdle("pay_database_wal_position_bytes").toBeGreaterThan(0);
  await expectEqualMetrics();
  await expectIdle("pay_transfers", { state: "assigned" }).toBe(1);
  await expectIdle("pay_lane_max_fee_per_gas_wei").toBeGreaterThan(1_000_000_000);
  await expectIdle("pay_lane_at_fee_ceiling").toBe(0);
  // No block came for a while, but the watcher is at the head.
  await expectIdle("pay_chain_cursor_lag_seconds").toBeLessThan(10);

  await chain.client.setAutomine(true);
  await mine(chain);
  expect(await waitFinal(fleet.shop, id, 30_000)).toMatchObject({ status: "succeeded" });
  // The payout begins a moment after the payment succeeds.
  await waitFor(async () => (await usdcBalance(chain, fleet.destination)) > 0n, { within: 30_000 });
  await waitFor(async () => (await readIdle("pay_transfers")) === 0, { within: 30_000 });
  await waitFor(async () => (await readIdle("pay_lane_transactions_in_flight")) === 0, { within: 10_000 });
  await expectEqualMetrics();
  await expectIdle("pay_lane_lowest_unconfirmed_age_seconds").toBe(0);
});

test("every worker reports a lane at its fee ceiling until the price falls", async () => {
  const buyer = await fundBuyer(chain);
  await mineAt(300n * GWEI);
  const expensiveBlock = Number(await chain.client.getBlockNumber());
  await waitFor(async () => (await readIdle("pay_chain_cursor_block")) === expensiveBlock, { within: 20_000 });
  // No transaction waits for the price yet.
  await expectIdle("pay_lane_at_fee_ceiling").toBe(0);
  const id = await createPayment(fleet.shop, { referenceId: "too dear", cents: "100" });
  await pay(fleet.shop, id, buyer, chain.id);
  await waitFor(async () => (await readIdle("pay_lane_at_fee_ceiling")) === 1, { within: 20_000 });
  await expectEqualMetrics();

  await mineAt(GWEI);
  expect(await waitFinal(fleet.shop, id, 40_000)).toMatchObject({ status: "succeeded" });
  await waitFor(async () => (await readIdle("pay_lane_at_fee_ceiling")) === 0, { within: 20_000 });
});

test("a worker has the checkout pages checked when it starts, and reports that they match the release", async () => {
  for (const page of ["checkout", "collect"])
    await waitFor(async () => sumOf((await scrapeBoth()).busy, "pay_page_differences", { page }) === 0, {
      within: 10_000,
    });
  const checkedAt = sumOf((await scrapeBoth()).busy, "pay_page_checked_timestamp_seconds", { page: "checkout" }) ?? 0;
  expect(Math.abs(Date.now() / 1000 - checkedAt)).toBeLessThan(600);
  // The worker that serves another queue does not check.
  expect(await readIdle("pay_page_differences")).toBeUndefined();
});

test("an idle worker has no statement that waits for a connection, also while it is scraped", async () => {
  for (let round = 0; round < 5; round += 1) {
    expect(await readIdle("pay_db_pool_connections", { state: "waiting" })).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
});

test("a table that is locked takes only the gauges of its rows from a scrape, which says since when", async () => {
  const locker = new pg.Client({ connectionString: fleet.databaseUrl });
  onTestFinished(() => void locker.end());
  await locker.connect();
  await locker.query("begin");
  /** Returns when each group was last read. */
  const readTimes = async () => {
    const times = (await scrape(idle.metricsUrl)).filter(({ name }) => name === "pay_gauges_read_timestamp_seconds");
    return Object.fromEntries(times.map(({ labels, value }) => [labels["group"], value]));
  };
  await expectIdle("pay_lane_at_fee_ceiling").toBe(0);
  await expectIdle("pay_webhook_oldest_pending_age_seconds").toBe(0);
  // The sums of the ledger have a read of their own.
  await locker.query("lock table ledger_day, lane, webhook_fanout in access exclusive mode");
  const before = await readTimes();
  const others = [
    "pay_failed_bookings",
    "pay_chain_cursor_lag_seconds",
    "pay_ledger_check_age_seconds",
    "pay_signer_log_contradicted",
    "pay_retention_behind_seconds",
    "pay_queue_jobs",
  ];
  /** Scrapes until all the other gauges are there. */
  const scrapeOthers = async () => {
    for (let scrapes = 1; ; scrapes += 1) {
      const began = Date.now();
      const samples = await scrape(idle.metricsUrl);
      expect(Date.now() - began, "without the limit, until the statement times out after 15 s").toBeLessThan(10_000);
      const absent = others.filter((name) => sumOf(samples, name) === undefined);
      if (absent.length === 0) return samples;
      expect(scrapes, `scrapes without ${absent.join()}`).toBeLessThan(10);
    }
  };
  const samples = await scrapeOthers();
  expect(sumOf(samples, "pay_lane_at_fee_ceiling")).toBeUndefined();
  expect(sumOf(samples, "pay_exceptions_open")).toBeUndefined();
  // A gauge without labels is absent, too, and not 0.
  expect(sumOf(samples, "pay_webhook_oldest_pending_age_seconds")).toBeUndefined();
  const build = samples.find(({ name }) => name === "pay_build_info");
  expect(build?.labels).toMatchObject({ version: "0.1.0", revision: "unknown", schema: "1" });
  const after = await readTimes();
  const { lanes, bookings = 0 } = before;
  expect(after).toMatchObject({ lanes });
  expect(after["bookings"]).toBeGreaterThan(bookings);
  await locker.end();
  await waitFor(async () => (await readIdle("pay_lane_at_fee_ceiling")) === 0, { within: 10_000 });
  await waitFor(async () => Number((await readTimes())["lanes"]) > Number(lanes), { within: 10_000 });
});

test("unpaid payments expire, and do not count as lost jobs", async () => {
  const expiresAt = new Date(Date.now() + 15_000);
  const make = (referenceId: string) => createPayment(fleet.shop, { referenceId, cents: "100", expiresAt });
  const ids = await Promise.all(["one", "two", "three"].map(make));
  for (const id of ids) expect(await waitFinal(fleet.shop, id, 60_000)).toMatchObject({ status: "expired" });
  const { busy } = await scrapeBoth();
  expect(sumOf(busy, "pay_sweep_reenqueued_total", { queue: "expire-payment" }) ?? 0).toBe(0);
});

/** These stay unset until the error that they count occurs; the test of that error shows that they are set. */
const setOnlyOnErrors = [
  "pay_audit_head_unexported_age_seconds",
  "pay_audit_login_entries",
  "pay_board_refused_logins_total",
  "pay_database_lost_commits_timestamp_seconds",
  "pay_rate_limited_total",
  "pay_retention_failures_total",
  "pay_single_endpoint_confirmations_total",
  "pay_chain_reorg_depth_blocks",
  "pay_trace_spans_dropped_total",
];

/**
 * These are set on Solana only, which this fleet lacks: test/integration/transfers/solana/history-errors.test.ts covers them.
 */
const onSolana = [
  "pay_history_unread_transactions",
  "pay_history_unreadable_transactions",
  "pay_history_listing_age_seconds",
];

/** These are set for endpoints with a budget only, which this fleet lacks: test/unit/chains/failover-budget.test.ts covers them. */
const ofBudgets = ["pay_rpc_budget_remaining_calls", "pay_rpc_budget_shortages_total"];

/**
 * These are set while a change of a destination waits or is not reported to the signer: test/integration/workers/handlers.test.ts and
 * test/integration/payments/maintenance/unreported-destinations.test.ts cover them.
 */
const ofChanges = ["pay_destination_changes_waiting", "pay_signer_unreported_age_seconds"];

/** It is set while a merchant is owed less than a refund: test/integration/payments/maintenance/gauges.test.ts covers it. */
const ofRefunds = ["pay_refund_uncovered_age_seconds"];

/** It is set where a chain has several endpoints: test/integration/transfers/evm/stuck-endpoint.test.ts covers it. */
const ofSeveralEndpoints = ["pay_rpc_endpoint_behind_blocks"];

/** It is set where an endpoint has a WebSocket: test/integration/chains/evm/head-wakes.test.ts covers it. */
const ofWebSockets = ["pay_head_subscription"];

/** It is 0 when no payment is unfinished; the first test sees another value. */
const ofUnfinished = ["pay_oldest_unfinished_payment_age_seconds"];

/** These are set where the api has a replica: test/integration/api/merchant/replica-reads.test.ts covers them. */
const ofReplica = ["pay_replica_reads_total", "pay_replica_lag_seconds"];

/** Set when history leaves, which takes days: test/integration/payments/maintenance/remove-history.test.ts covers it. */
const ofRetention = ["pay_retention_rows_removed_total"];

/** It is set where the networks file names its feed: test/integration/payments/options/native-prices.test.ts covers it. */
const ofNativePrices = ["pay_native_price"];

/** It is set when an operator acts on the console: test/integration/ops/console/actions.test.ts covers it. */
const ofOperators = ["pay_operator_requests_total"];

/** The signer's process sets these, which this fleet lacks: test/integration/signer covers them. */
const ofSigner = [
  "pay_signer_payouts_total",
  "pay_signer_refusals_total",
  "pay_signer_first_destinations_total",
  "pay_signer_funds_short_age_seconds",
  "pay_signer_deposits_total",
  "pay_signer_request_seconds",
  "pay_signer_paused",
  "pay_signer_destinations_waiting",
  "pay_signer_approval_keys_waiting",
  "pay_signer_claims_held",
  "pay_signer_store_rows",
  "pay_signer_log_contradicted",
  "pay_signer_audit_head_unexported_age_seconds",
  "pay_signer_audit_entry_without_head_age_seconds",
  "pay_signer_log_compared_timestamp_seconds",
  "pay_signer_hot_balance_minor_units",
  "pay_signer_hot_floor_minor_units",
  "pay_signer_hot_ceiling_minor_units",
  "pay_signer_lone_deposit_age_seconds",
  "pay_signer_cold_transfers_total",
];

test("a run of payments sets every metric, and no alert or dashboard uses a metric that is never set", async () => {
  const endpoint = await startWebhookEndpoint();
  endpoint.answer(500);
  await registerEndpointIn(fleet.databaseUrl, fleet.testShop.caller.merchantId, endpoint.url);
  const testPayment = await createPayment(fleet.testShop, { referenceId: "test", cents: "100" });
  const held = getStatus(fleet.testShop, testPayment, 25_000);
  const api = fleet.apis[0]?.metricsUrl ?? "";
  // The long poll may have ended when the other metrics are read, on a slow machine.
  const polling = await waitFor(
    async () => {
      const samples = await scrape(api);
      return sumOf(samples, "pay_long_polls_waiting") === 1 && samples;
    },
    { within: 20_000, what: "the long poll" },
  );
  await waitFor(async () => ((await readIdle("pay_webhook_oldest_pending_age_seconds")) ?? 0) > 0, { within: 20_000 });
  await waitFor(() => endpoint.arrivals.length > 0, { within: 20_000, what: "the event of the test payment" });
  // The worker counts the delivery after the response.
  const countDeliveries = async () => sumOf((await scrapeBoth()).busy, "pay_webhook_deliveries_total") ?? 0;
  await waitFor(async () => (await countDeliveries()) > 0, { within: 20_000, what: "the delivery is counted" });
  // A worker repeats the sums of the ledger for a moment.
  const readLedger = async () => sumOf((await scrapeBoth()).busy, "pay_ledger_balance_minor_units");
  await waitFor(async () => (await readLedger()) !== undefined, { within: 20_000, what: "the sums of the ledger" });
  const set = new Set<string>();
  const add = (samples: readonly Sample[]) => {
    for (const { name } of samples.filter(isSet)) set.add(name.replace(/_(bucket|sum|count)$/, ""));
  };
  add(polling);
  add(await scrape(api));
  add((await scrapeBoth()).busy);
  await cancel(fleet.testShop, testPayment);
  await held;

  const silent = [
    ...setOnlyOnErrors,
    ...onSolana,
    ...ofBudgets,
    ...ofChanges,
    ...ofRefunds,
    ...ofSeveralEndpoints,
    ...ofWebSockets,
    ...ofNativePrices,
    ...ofSigner,
    ...ofOperators,
    ...ofRetention,
    ...ofReplica,
    ...ofUnfinished,
  ];
  const names = (await allMetrics()).filter((name) => !silent.includes(name));
  const listUnset = async () => {
    add((await scrapeBoth()).busy);
    return names.filter((name) => !set.has(name));
  };
  await expect.poll(listUnset, repeated).toEqual([]);
  expect(silent.filter((name) => set.has(name))).toEqual([]);
  const known = new Set([...set, ...silent]);
  const isKnown = (name: string) => known.has(name) || known.has(name.replace(/_(bucket|sum|count)$/, ""));
  expect(listUsedMetrics().filter((name) => !isKnown(name))).toEqual([]);
});

/** Returns whether a series was set: one with labels exists only after that, one without any starts at 0. */
function isSet({ labels, value }: { labels: Record<string, string>; value: number }): boolean {
  return value !== 0 || Object.keys(labels).some((label) => label !== "role" && label !== "le");
}

async function allMetrics(): Promise<string[]> {
  const registry = new Registry();
  createMetrics(registry, "worker");
  return (await registry.getMetricsAsJSON()).map(({ name }) => name).filter((name) => name.startsWith("pay_"));
}

/** Returns every series of ours that an alert, a recording rule or a dashboard uses. */
function listUsedMetrics(): string[] {
  const ops = new URL("../../../ops/", import.meta.url);
  const dashboards = readdirSync(new URL("grafana/dashboards/", ops)).map((file) => `grafana/dashboards/${file}`);
  const files = ["prometheus/alerts.yml", "prometheus/recordings.yml", ...dashboards];
  return [
    ...new Set(files.flatMap((file) => readFileSync(new URL(file, ops), "utf8").match(/(?<![\w:])pay_[a-z_]+/g) ?? [])),
  ];
}

/** Funds a buyer: minting is a transaction too, so it needs automine. */
async function fundBuyerMining() {
  await chain.client.setAutomine(true);
  const buyer = await fundBuyer(chain);
  await chain.client.setAutomine(false);
  return buyer;
}

async function mineAt(baseFeePerGas: bigint): Promise<void> {
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas });
  await mine(chain);
}
