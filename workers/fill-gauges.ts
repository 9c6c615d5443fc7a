import type { Queue } from "bullmq";
import type { Gauge } from "prom-client";
import { readMoneyStatus } from "../payments/maintenance/money-gauges.ts";
import { readSystemStatus } from "../payments/maintenance/system-gauges.ts";
import type { PaymentDeps } from "../payments/payment-deps.ts";
import type { QueueName } from "../queues/catalog.ts";
import type { Metrics } from "../runtime/metrics.ts";
import { withTimeout } from "../runtime/timeout.ts";

type Deps = Pick<PaymentDeps, "db" | "chains" | "now"> & { queues: readonly Queue[]; metrics: Metrics };

/** The queue that serves the rows of a table. */
const queueOf = {
  payment: "expire-payment",
  attempt: "verify-signature",
  transfer: "relay-transfers",
  settlement: "settle",
  refund: "refund",
  chain_cursor: "watch-chain",
  webhook_delivery: "deliver-webhook",
} as const satisfies Record<string, QueueName>;

/** Time limit for filling one gauge, milliseconds. A scrape must return the other metrics while Postgres or Redis hangs. */
const FILL_TIMEOUT_MS = 3_000;

/** The sums of the ledger are repeated for so many times as long as it took to read them. */
const MONEY_PACE = 20;

/**
 * Fills the gauges that describe the whole system from Postgres and Redis, each time they are scraped. Every worker reports
 * the same values, even an idle one. A gauge that cannot be read is absent from the scrape. The sums of the ledger may be
 * older than the scrape.
 */
export function fillGauges(deps: Deps): void {
  const { queues, metrics } = deps;
  // All gauges of one scrape are filled concurrently and share one read.
  const read = shareRuns(() => readSystemStatus(deps));
  // Sums over all history: apart, so that the other gauges stay when they take too long. A late sum is in the next scrape.
  const readMoney = shareRuns(pace(() => readMoneyStatus(deps), MONEY_PACE));

  onScrape(metrics.queueJobs, async (set) => {
    const states = ["waiting", "active", "delayed", "prioritized", "failed"] as const;
    for (const queue of queues)
      for (const [state, count] of Object.entries(await queue.getJobCounts(...states)))
        set({ queue: queue.name, state }, count);
  });
  onScrape(metrics.queueOldestSeconds, async (set) => {
    for (const { table, seconds } of (await read()).overdue) set({ queue: queueOf[table] }, seconds);
  });
  onScrape(metrics.transfers, async (set) => {
    for (const { chain, state, count } of (await read()).transfers) set({ chain, state }, count);
  });
  onScrape(metrics.payoutsHeld, async (set) => {
    for (const { chain, count } of (await read()).heldPayouts) set({ chain }, count);
  });
  onScrape(metrics.paymentsHeld, async (set) => {
    for (const { chain, count } of (await read()).heldPayments) set({ chain }, count);
  });
  onScrape(metrics.payoutsBlocked, async (set) => {
    for (const { kind, obstacle, count } of (await read()).blocked) set({ kind, obstacle }, count);
  });
  onScrape(metrics.destinationChangesWaiting, async (set) => {
    for (const { mode, change, count } of (await read()).destinationChanges) set({ mode, change: `${change}` }, count);
  });
  onScrape(metrics.cursorBlock, async (set) => {
    for (const { chain, cursor } of (await read()).chains) set({ chain }, cursor);
  });
  onScrape(metrics.cursorLagSeconds, async (set) => {
    for (const { chain, lagSeconds } of (await read()).chains) set({ chain }, lagSeconds);
  });
  onScrape(metrics.historyUnread, async (set) => {
    for (const { chain, unread } of (await read()).history) set({ chain }, unread);
  });
  onScrape(metrics.historyUnreadable, async (set) => {
    for (const { chain, unreadable } of (await read()).history) set({ chain }, unreadable);
  });
  onScrape(metrics.ledgerDifference, async (set) => {
    for (const { chain, asset, difference } of (await read()).differences) set({ chain, asset }, Number(difference));
  });
  onScrape(metrics.ledgerReconciliationAgeSeconds, async (set) => {
    for (const { chain, ageSeconds } of (await read()).differences) set({ chain }, ageSeconds);
  });
  onScrape(metrics.ledgerFindings, async (set) => {
    for (const { kind, count } of (await read()).findings) set({ kind }, count);
  });
  onScrape(metrics.ledgerCheckAgeSeconds, async (set) => set({}, (await read()).ledgerCheckSeconds));
  onScrape(metrics.ledgerBalance, async (set) => {
    for (const { account, asset, amount } of (await readMoney()).balances)
      set({ account, chain: asset.slice(0, asset.indexOf("/")), asset }, Number(amount));
  });
  onScrape(metrics.exceptionsOpen, async (set) => {
    for (const { kind, count } of (await readMoney()).exceptions) set({ kind }, count);
  });
  onScrape(metrics.refundsUnfinished, async (set) => {
    for (const { state, count } of (await read()).refunds) set({ state }, count);
  });
  onScrape(metrics.oldestUnfinishedSeconds, async (set) => set({}, (await read()).oldestPaymentSeconds));
  onScrape(metrics.failedBookings, async (set) => {
    for (const { chain, count } of (await read()).failedBookings) set({ chain }, count);
  });
  onScrape(metrics.databaseLostCommits, async (set) => {
    const at = (await read()).steppedBackAt;
    if (at) set({}, at.getTime() / 1000);
  });
  onScrape(metrics.databaseWalPosition, async (set) => set({}, (await read()).walBytes));
  onScrape(metrics.chainRereadPending, async (set) => {
    for (const { chain, unread } of (await read()).unread) set({ chain }, Number(unread));
  });
  onScrape(metrics.webhookOldestSeconds, async (set) => set({}, (await read()).oldestEventSeconds));
  onScrape(metrics.auditHeadAgeSeconds, async (set) => set({}, (await read()).auditHeadSeconds));
  onScrape(metrics.auditEntryAgeSeconds, async (set) => set({}, (await read()).auditEntrySeconds));
  onScrape(metrics.signerLogContradicted, async (set) => set({}, Number((await read()).isSignerLogContradicted)));
  onScrape(metrics.retentionBehindSeconds, async (set) => {
    for (const { relation, behindSeconds } of (await read()).retention) set({ relation }, behindSeconds);
  });
  onScrape(metrics.retentionFailing, async (set) => {
    for (const { relation, failing } of (await read()).retention) set({ relation }, failing);
  });
  onScrape(metrics.laneNextNonce, async (set) => {
    for (const { chain, lane, nextNonce } of (await read()).lanes) set({ chain, lane }, nextNonce);
  });
  onScrape(metrics.laneInFlight, async (set) => {
    for (const { chain, lane, inFlight } of (await read()).lanes) set({ chain, lane }, inFlight);
  });
  onScrape(metrics.laneOldestSeconds, async (set) => {
    for (const { chain, lane, oldestSeconds } of (await read()).lanes) set({ chain, lane }, oldestSeconds);
  });
  onScrape(metrics.laneMaxFee, async (set) => {
    for (const { chain, lane, maxFee } of (await read()).lanes)
      if (maxFee !== undefined) set({ chain, lane }, Number(maxFee));
  });
  onScrape(metrics.laneAtFeeCeiling, async (set) => {
    for (const { chain, lane, held } of (await read()).lanes) set({ chain, lane }, Number(held));
  });
}

type SetValue<L extends string> = (labels: Record<L, string>, value: number) => void;

/** Refills a gauge at each scrape. A gauge that cannot be filled is left empty, so it is absent from the scrape. */
function onScrape<L extends string>(gauge: Gauge<L>, fill: (set: SetValue<L>) => Promise<void>): void {
  const collect = async () => {
    const found: [Record<L, string>, number][] = [];
    const filled = fill((labels, value) => found.push([labels, value]));
    await withTimeout(filled, FILL_TIMEOUT_MS, "a gauge").catch(() => found.splice(0));
    gauge.reset();
    for (const [labels, value] of found) gauge.set(labels, value);
  };
  Object.assign(gauge, { collect });
}

/**
 * Returns a read that is busy for a small share of the time, however long it takes and however often it is called: a value is
 * repeated for `times` as long as it took to read it.
 */
function pace<T>(read: () => Promise<T>, times: number): () => Promise<T> {
  let last: { value: T; until: number } | undefined;
  return async () => {
    const begun = performance.now();
    if (last && begun < last.until) return last.value;
    const value = await read();
    const ended = performance.now();
    last = { value, until: ended + times * (ended - begun) };
    return value;
  };
}

/** Shares a run: callers that arrive while a run is in progress get its result. */
function shareRuns<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => {
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  };
}
