import type { Queue } from "bullmq";
import type { Gauge } from "prom-client";
import type { GaugeDeps } from "../payments/maintenance/gauge-deps.ts";
import { readMoneyStatus } from "../payments/maintenance/money-gauges.ts";
import { createSystemReads, type SystemReads } from "../payments/maintenance/system-gauges.ts";
import type { Metrics } from "../runtime/metrics.ts";
import { withTimeout } from "../runtime/timeout.ts";
import { readInSequence, SCRAPE_WAIT_MS } from "./read-in-sequence.ts";

type Deps = GaugeDeps & { queues: readonly Queue[]; metrics: Metrics };

/** The sums of the ledger are repeated for so many times as long as it took to read them. */
const MONEY_PACE = 20;

/** The groups of gauges that are read apart: those of `createSystemReads`, the jobs in Redis and the sums of the ledger. */
type Group = keyof SystemReads | "jobs" | "money";

/**
 * Fills the gauges that describe the whole system from Postgres and Redis, each time they are scraped. Every worker reports
 * the same values, even an idle one. A gauge that cannot be read is absent from the scrape, and the gauges of other groups
 * stay, also while Postgres or Redis hangs. `gaugesRead` says when each group was last filled. The sums of the ledger may be
 * older than the scrape.
 */
export function fillGauges(deps: Deps): void {
  const { queues, metrics } = deps;
  // All gauges of one scrape are filled concurrently, and those of a group share one read.
  const read = readInSequence(() => createSystemReads(deps));
  // Sums over all history: apart, so that the other gauges stay when they take too long. A late sum is in the next scrape.
  const readMoney = shareRuns(pace(() => readMoneyStatus(deps), MONEY_PACE));
  const mark = (group: Group) => metrics.gaugesRead.set({ group }, deps.now().getTime() / 1000);
  // The start counts as a read: a group that is never read must not be absent.
  const systemGroups = Object.keys(createSystemReads(deps)) as (keyof SystemReads)[];
  for (const group of [...systemGroups, "jobs", "money"] as const) mark(group);

  const fill = <G extends keyof SystemReads, L extends string>(
    gauge: Gauge<L>,
    group: G,
    write: (set: SetValue<L>, status: Awaited<ReturnType<SystemReads[G]>>) => void,
  ) =>
    onScrape(
      gauge,
      () => read(group) as Promise<Awaited<ReturnType<SystemReads[G]>>>,
      () => mark(group),
      write,
    );

  const countJobs = async () => {
    const states = ["waiting", "active", "delayed", "prioritized", "failed"] as const;
    const counts: { queue: string; state: string; count: number }[] = [];
    for (const queue of queues)
      for (const [state, count] of Object.entries(await queue.getJobCounts(...states)))
        counts.push({ queue: queue.name, state, count });
    return counts;
  };
  onScrape(
    metrics.queueJobs,
    countJobs,
    () => mark("jobs"),
    (set, counts) => {
      for (const { queue, state, count } of counts) set({ queue, state }, count);
    },
  );
  fill(metrics.queueOldestSeconds, "overdue", (set, { overdue }) => {
    for (const { queue, seconds } of overdue) set({ queue }, seconds);
  });
  fill(metrics.transfers, "transfers", (set, { transfers }) => {
    for (const { chain, state, count } of transfers) set({ chain, state }, count);
  });
  fill(metrics.payoutsHeld, "held", (set, { heldPayouts }) => {
    for (const { chain, count } of heldPayouts) set({ chain }, count);
  });
  fill(metrics.paymentsHeld, "held", (set, { heldPayments }) => {
    for (const { chain, count } of heldPayments) set({ chain }, count);
  });
  fill(metrics.payoutsBlocked, "payouts", (set, { blocked }) => {
    for (const { kind, obstacle, count } of blocked) set({ kind, obstacle }, count);
  });
  fill(metrics.destinationChangesWaiting, "destinations", (set, { destinationChanges }) => {
    for (const { mode, change, count } of destinationChanges) set({ mode, change: `${change}` }, count);
  });
  fill(metrics.signerUnreportedSeconds, "destinations", (set, { unreportedSeconds }) => set({}, unreportedSeconds));
  fill(metrics.cursorBlock, "chains", (set, { chains }) => {
    for (const { chain, cursor } of chains) set({ chain }, cursor);
  });
  fill(metrics.cursorLagSeconds, "chains", (set, { chains }) => {
    for (const { chain, lagSeconds } of chains) set({ chain }, lagSeconds);
  });
  fill(metrics.finalLagSeconds, "chains", (set, { chains }) => {
    for (const { chain, finalLagSeconds } of chains) if (finalLagSeconds !== undefined) set({ chain }, finalLagSeconds);
  });
  fill(metrics.finalitySeconds, "chains", (set, { chains }) => {
    for (const { chain, finalitySeconds } of chains) set({ chain }, finalitySeconds);
  });
  fill(metrics.historyUnread, "history", (set, { history }) => {
    for (const { chain, unread } of history) set({ chain }, unread);
  });
  fill(metrics.historyUnreadable, "history", (set, { history }) => {
    for (const { chain, unreadable } of history) set({ chain }, unreadable);
  });
  fill(metrics.historyListingAgeSeconds, "history", (set, { history }) => {
    for (const { chain, listingAgeSeconds } of history) set({ chain }, listingAgeSeconds);
  });
  fill(metrics.ledgerDifference, "reconciliations", (set, { differences }) => {
    for (const { chain, asset, difference } of differences) set({ chain, asset }, Number(difference));
  });
  fill(metrics.ledgerReconciliationAgeSeconds, "reconciliations", (set, { reconciliationAges }) => {
    for (const { chain, seconds } of reconciliationAges) set({ chain }, seconds);
  });
  fill(metrics.ledgerFindings, "ledger_checks", (set, { findings }) => {
    for (const { kind, count } of findings) set({ kind }, count);
  });
  fill(metrics.ledgerCheckAgeSeconds, "ledger_checks", (set, { ledgerCheckSeconds }) => set({}, ledgerCheckSeconds));
  onScrape(
    metrics.ledgerBalance,
    readMoney,
    () => mark("money"),
    (set, { balances }) => {
      for (const { account, asset, amount } of balances)
        set({ account, chain: asset.slice(0, asset.indexOf("/")), asset }, Number(amount));
    },
  );
  onScrape(
    metrics.exceptionsOpen,
    readMoney,
    () => mark("money"),
    (set, { exceptions }) => {
      for (const { booking, count } of exceptions) set({ booking }, count);
    },
  );
  fill(metrics.refundsUnfinished, "refunds", (set, { refunds }) => {
    for (const { state, count } of refunds) set({ state }, count);
  });
  fill(metrics.refundUncoveredSeconds, "refunds", (set, { uncoveredRefundSeconds }) => set({}, uncoveredRefundSeconds));
  fill(metrics.oldestUnfinishedSeconds, "payments", (set, { oldestPaymentSeconds }) => set({}, oldestPaymentSeconds));
  fill(metrics.overduePayments, "payments", (set, { overduePayments }) => {
    for (const { chain, count } of overduePayments) set({ chain }, count);
  });
  fill(metrics.failedBookings, "bookings", (set, { failedBookings }) => {
    for (const { chain, count } of failedBookings) set({ chain }, count);
  });
  fill(metrics.databaseLostCommits, "database", (set, { steppedBackAt }) => {
    if (steppedBackAt) set({}, steppedBackAt.getTime() / 1000);
  });
  fill(metrics.databaseWalPosition, "database", (set, { walBytes }) => set({}, walBytes));
  fill(metrics.chainRereadPending, "database", (set, { unread }) => {
    for (const { chain, unread: isUnread } of unread) set({ chain }, Number(isUnread));
  });
  fill(metrics.webhookOldestSeconds, "webhooks", (set, { oldestEventSeconds }) => set({}, oldestEventSeconds));
  fill(metrics.auditHeadAgeSeconds, "audit", (set, { auditHeadSeconds }) => set({}, auditHeadSeconds));
  fill(metrics.auditEntryAgeSeconds, "audit", (set, { auditEntrySeconds }) => set({}, auditEntrySeconds));
  fill(metrics.auditLoginEntries, "audit", (set, { loginEntries }) => set({}, loginEntries));
  fill(metrics.signerLogContradicted, "signer_log", (set, { isSignerLogContradicted }) =>
    set({}, Number(isSignerLogContradicted)),
  );
  fill(metrics.retentionBehindSeconds, "retention", (set, { retention }) => {
    for (const { relation, behindSeconds } of retention) set({ relation }, behindSeconds);
  });
  fill(metrics.retentionFailing, "retention", (set, { retention }) => {
    for (const { relation, failing } of retention) set({ relation }, failing);
  });
  fill(metrics.laneNextNonce, "lanes", (set, { lanes }) => {
    for (const { chain, lane, nextNonce } of lanes) set({ chain, lane }, nextNonce);
  });
  fill(metrics.laneInFlight, "lanes", (set, { lanes }) => {
    for (const { chain, lane, inFlight } of lanes) set({ chain, lane }, inFlight);
  });
  fill(metrics.laneOldestSeconds, "lanes", (set, { lanes }) => {
    for (const { chain, lane, oldestSeconds } of lanes) set({ chain, lane }, oldestSeconds);
  });
  fill(metrics.laneMaxFee, "lanes", (set, { lanes }) => {
    for (const { chain, lane, maxFee } of lanes) if (maxFee !== undefined) set({ chain, lane }, Number(maxFee));
  });
  fill(metrics.laneAtFeeCeiling, "lanes", (set, { lanes }) => {
    for (const { chain, lane, held } of lanes) set({ chain, lane }, Number(held));
  });
}

type SetValue<L extends string> = (labels: Record<L, string>, value: number) => void;

/**
 * Refills a gauge at each scrape. A gauge that cannot be read is left empty, so it is absent from the scrape.
 * @param filled is called after a read that succeeded
 */
function onScrape<L extends string, T>(
  gauge: Gauge<L>,
  read: () => Promise<T>,
  filled: () => void,
  write: (set: SetValue<L>, status: T) => void,
): void {
  const collect = async () => {
    const found: [Record<L, string>, number][] = [];
    try {
      const status = await withTimeout(read(), SCRAPE_WAIT_MS, "a gauge");
      write((labels, value) => found.push([labels, value]), status);
      filled();
    } catch {
      found.splice(0);
    }
    gauge.reset();
    // The reset of a gauge without labels sets it to 0, which would say that nothing is wrong.
    gauge.remove({});
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
