import {
  amountObstacles,
  blockQueue,
  deferRows,
  listBlockedQueues,
  listDueChains,
  listQueuedIds,
  listQueuedRows,
  listStillAccumulating,
  type Obstacle,
  type PayoutKind,
  type QueuedRow,
  type QueueKey,
  restQueues,
  resumeQueue,
  takeDueQueues,
} from "../../db/queries/payout-queue.ts";
import { isTransientRefusal, type RefusalReason, refusalReasons } from "../../signer/refusals.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { beginRefunds, type RefundOutcome } from "./begin-refunds.ts";
import { beginSettlements, type SettleOutcome } from "./begin-settlements.ts";
import { type CatchUpDeps, listCaughtUp, type PayoutDeps } from "./sign-payout.ts";

type Deps = PaymentDeps & PayoutDeps;

/** Queues taken per chain in one sweep. */
const QUEUES = 500;
/** Rows of a queue per job. */
const BATCH = 100;
/** Rows of a blocked queue that are retried when it is checked again. */
const PROBE = 10;

/** Due rows of one queue, for one job. `retry` is the retry number in the job's id. */
export type DuePayouts = { ids: [string, ...string[]]; retry: number };

/**
 * Takes due payouts. For each chain whose watcher is at the head, takes up to `QUEUES` queues (a queue is a merchant
 * and an asset), longest due first, and at most one batch of each queue. A blocked queue is taken only when its
 * obstacle is gone or its next check is due. The caller must enqueue a job for each result.
 */
export async function takePayouts(
  deps: Pick<PaymentDeps, "db" | "chains" | "now"> & CatchUpDeps,
  kind: PayoutKind,
): Promise<DuePayouts[]> {
  const now = deps.now();
  // Usually no queue is due, and then the state of the chains is not read.
  const waiting = await listDueChains(deps.db, { kind, chains: [...deps.chains.keys()], now });
  const chains = [...(await listCaughtUp(deps, waiting)).keys()];
  if (chains.length === 0) return [];
  const taken = await takeDueQueues(deps.db, { kind, chains, now, limit: QUEUES });
  const queues = taken.map((queue) => ({ ...queue, limit: queue.blocked ? PROBE : BATCH }));
  const found = await listQueuedIds(deps.db, { kind, queues, now });
  const due: DuePayouts[] = [];
  for (const [index, queue] of taken.entries()) {
    const [first, ...others] = found[index] ?? [];
    if (first) due.push({ ids: [first, ...others], retry: queue.version });
  }
  await restQueues(deps.db, { kind, queues: taken.filter((_queue, index) => found[index]?.length === 0) });
  return due;
}

/**
 * Begins settlements, and records for each queue whether it may continue or which obstacle blocks it. Returns outcomes
 * in the order of `ids`. Throws the first error of a settlement that failed, after the state of the queues is recorded.
 */
export async function dispatchSettlements(deps: Deps, ids: readonly string[]): Promise<(SettleOutcome | Obstacle)[]> {
  const rows = await listQueuedRows(deps.db, { kind: "settlement", ids });
  const begun = await beginSettlements(deps, ids);
  const accumulating = rows.filter(({ state }) => state === "accumulating").map(({ id }) => id);
  const still = accumulating.length > 0 ? await listStillAccumulating(deps.db, accumulating) : [];
  const kept = new Map(still.map(({ id, held }): [string, Obstacle] => [id, held ? "held" : "minimum"]));
  const outcomes = ids.map((id, index) => kept.get(id) ?? begun[index] ?? "begun");
  const left = outcomes.map((outcome): Outcome => (typeof outcome === "object" ? "failed" : outcome));
  await reportOutcomes(deps, { rows, outcomes: new Map(ids.map((id, index) => [id, left[index] ?? "begun"])) });
  const failed = outcomes.find((outcome) => typeof outcome === "object");
  if (failed) throw failed.error;
  return outcomes.filter((outcome) => typeof outcome === "string");
}

/**
 * Begins refunds, and records the state of their queues as `dispatchSettlements` does. Returns outcomes in the order of `ids`. Throws the
 * first error of a refund that failed, after the state of the queues is recorded.
 */
export async function dispatchRefunds(deps: Deps, ids: readonly string[]): Promise<RefundOutcome[]> {
  const rows = await listQueuedRows(deps.db, { kind: "refund", ids });
  const begun = await beginRefunds(deps, ids);
  const failed = begun.find((outcome) => typeof outcome === "object");
  const left = begun.map((outcome): Outcome => {
    if (typeof outcome === "object") return "failed";
    // A refund whose receiver is rejected or blocked is held: it leaves its queue, and the next one may follow.
    return outcome === "not_served" || outcome === "receiver_blocked" ? "begun" : outcome;
  });
  await reportOutcomes(deps, { rows, outcomes: new Map(ids.map((id, index) => [id, left[index] ?? "begun"])) });
  if (failed) throw failed.error;
  return begun.filter((outcome) => typeof outcome === "string");
}

type Outcome = "begun" | "watcher_behind" | "failed" | Obstacle;

/**
 * Records the outcomes of a run with the queues. `rows` were read before the run, so their `version` detects concurrent
 * changes, which win.
 */
async function reportOutcomes(
  deps: Pick<PaymentDeps, "db" | "now">,
  { rows, outcomes }: { rows: readonly QueuedRow[]; outcomes: ReadonlyMap<string, Outcome> },
): Promise<void> {
  const queues = Map.groupBy(rows, ({ merchant_id, asset, chain }) => `${merchant_id} ${asset} ${chain}`);
  for (const [first, ...others] of queues.values()) {
    if (!first) continue;
    const all = [first, ...others];
    const found = all.map(({ id }) => ({ id, outcome: outcomes.get(id) ?? "begun" }));
    const short = found.filter(({ outcome }) => mustDefer(first.kind, outcome));
    if (short.length > 0) await deferRows(deps.db, { kind: first.kind, ids: short.map(({ id }) => id) });
    const key: QueueKey & { now: Date } = { ...first, now: deps.now() };
    if (found.some(({ outcome }) => outcome === "begun")) {
      if (!first.is_fresh || short.length > 0) await resumeQueue(deps.db, key);
      continue;
    }
    // `watcher_behind` blocks nothing: the sweep skips the chain, and its queues stay due. What failed may succeed within a minute.
    const obstacle = chooseObstacle(found.map(({ outcome }) => outcome).filter(isObstacle));
    const hasFailed = found.some(({ outcome }) => outcome === "failed");
    const isTransient = obstacle !== undefined && (hasFailed || isTransientObstacle(obstacle));
    if (obstacle) await blockQueue(deps.db, { ...key, version: first.version, obstacle, isTransient });
  }
}

/**
 * Returns the obstacle that is stored with a queue whose payouts wait for several, because alerts, wakes and the next check depend on it:
 * a refusal that may go away within a minute, then what a person has to find out about, then a lack of inventory, which operators can
 * add, while a balance waits for the merchant's payments. Otherwise it is the first one. Pure.
 */
export function chooseObstacle(found: readonly Obstacle[]): Obstacle | undefined {
  return (
    found.find(isTransientObstacle) ??
    found.find((one) => one === "unrecorded_payout" || isRefusal(one)) ??
    found.find((one) => one === "inventory_short") ??
    found[0]
  );
}

/**
 * Returns true when the payouts behind this one in its queue may go first: another amount, another decision of the signer, or
 * refunds of other payments.
 */
const mustDefer = (kind: PayoutKind, outcome: Outcome): boolean =>
  amountObstacles.some((obstacle) => obstacle === outcome) ||
  (kind === "refund" && outcome === "unrecorded_payout") ||
  (isRefusal(outcome) && !isTransientRefusal(outcome));

const isRefusal = (outcome: Outcome): outcome is RefusalReason => refusalReasons.some((reason) => reason === outcome);
const isTransientObstacle = (obstacle: Obstacle): boolean => isRefusal(obstacle) && isTransientRefusal(obstacle);
const isObstacle = (outcome: Outcome): outcome is Obstacle =>
  outcome !== "begun" && outcome !== "watcher_behind" && outcome !== "failed";

/** A blocked queue, for operators. `waiting` counts its payouts up to 10,000. */
type BlockedPayouts = {
  kind: PayoutKind;
  merchantId: string;
  asset: string;
  chain: string;
  blockedBy: string;
  since: Date;
  nextCheckAt: Date;
  waiting: number;
};

/** Lists blocked queues, longest blocked first. */
export async function listBlockedPayouts({ db }: Pick<Deps, "db">, limit: number): Promise<BlockedPayouts[]> {
  const rows = await listBlockedQueues(db, limit);
  return rows.map((row) => ({
    kind: row.kind,
    merchantId: row.merchant_id,
    asset: row.asset,
    chain: row.chain,
    blockedBy: row.blocked_by,
    since: row.blocked_at,
    nextCheckAt: row.due_at,
    waiting: row.waiting,
  }));
}
