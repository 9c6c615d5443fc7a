import {
  type BlockedQueue,
  blockQueue,
  deferRows,
  listBlockedQueues,
  listQueuedIds,
  listQueuedRows,
  listStillGathering,
  type Obstacle,
  ofAmount,
  type PayoutKind,
  type QueuedRow,
  type QueueKey,
  restQueues,
  resumeQueue,
  takeDueQueues,
} from "../db/payout-queue.ts";
import { beginRefunds, type RefundOutcome } from "./begin-refunds.ts";
import type { PaymentDeps } from "./deps.ts";
import { listCaughtUp, type PayoutDeps } from "./payout.ts";
import { beginSettlements, type SettleOutcome } from "./settle.ts";

type Deps = PaymentDeps & PayoutDeps;

/** Queues taken of each chain in one sweep. */
const QUEUES = 500;
/** Rows of a queue in one job. */
const BATCH = 100;
/** Rows of a blocked queue that are tried when it is checked again. */
const PROBE = 10;

/** Rows of one queue that are due, for one job; `again` is the job's number. */
export type DuePayouts = { ids: [string, ...string[]]; again: number };

/**
 * Takes payouts that are due: of each chain whose watcher stands at the head so many queues (merchant and asset), the
 * longest due first, and of each queue at most one batch. What is blocked is not taken before its obstacle has gone or its
 * next check is due. The caller enqueues a job for each.
 */
export async function takePayouts(
  deps: Pick<PaymentDeps, "db" | "chains" | "now"> & PayoutDeps,
  kind: PayoutKind,
): Promise<DuePayouts[]> {
  const now = deps.now();
  const chains = [...(await listCaughtUp(deps, [...deps.chains.keys()])).keys()];
  const taken = await takeDueQueues(deps.db, { kind, chains, now, limit: QUEUES });
  const queues = taken.map((queue) => ({ ...queue, limit: queue.blocked ? PROBE : BATCH }));
  const found = await listQueuedIds(deps.db, { kind, queues, now });
  const due: DuePayouts[] = [];
  for (const [index, queue] of taken.entries()) {
    const [first, ...others] = found[index] ?? [];
    if (first) due.push({ ids: [first, ...others], again: queue.version });
  }
  await restQueues(deps.db, { kind, queues: taken.filter((_queue, index) => found[index]?.length === 0) });
  return due;
}

/** Begins settlements and stores for each queue whether its next ones can follow, or what blocks them. Outcomes in order. */
export async function payOut(deps: Deps, ids: readonly string[]): Promise<(SettleOutcome | Obstacle)[]> {
  const rows = await listQueuedRows(deps.db, { kind: "settlement", ids });
  const begun = await beginSettlements(deps, ids);
  const accumulating = rows.filter(({ state }) => state === "gathering").map(({ id }) => id);
  const still = accumulating.length > 0 ? await listStillGathering(deps.db, accumulating) : [];
  const kept = new Map(still.map(({ id, held }): [string, Obstacle] => [id, held ? "held" : "minimum"]));
  const outcomes = ids.map((id, index) => kept.get(id) ?? begun[index] ?? "begun");
  await reportOutcomes(deps, { rows, outcomes: new Map(ids.map((id, index) => [id, outcomes[index] ?? "begun"])) });
  return outcomes;
}

/** The same for refunds. */
export async function payBack(deps: Deps, ids: readonly string[]): Promise<RefundOutcome[]> {
  const rows = await listQueuedRows(deps.db, { kind: "refund", ids });
  const outcomes = await beginRefunds(deps, ids);
  // A refund that is not served is held: it leaves its queue, and the next one may follow.
  const left = outcomes.map((outcome) => (outcome === "not_served" ? "begun" : outcome));
  await reportOutcomes(deps, { rows, outcomes: new Map(ids.map((id, index) => [id, left[index] ?? "begun"])) });
  return outcomes;
}

type Outcome = "begun" | "watcher_behind" | Obstacle;

/** `rows` were read before the payouts were tried: what has changed since counts more than what was found. */
async function reportOutcomes(
  deps: Pick<PaymentDeps, "db" | "now">,
  { rows, outcomes }: { rows: readonly QueuedRow[]; outcomes: ReadonlyMap<string, Outcome> },
): Promise<void> {
  const queues = Map.groupBy(rows, ({ merchantId, asset, chain }) => `${merchantId} ${asset} ${chain}`);
  for (const [first, ...others] of queues.values()) {
    if (!first) continue;
    const all = [first, ...others];
    const found = all.map(({ id }) => ({ id, outcome: outcomes.get(id) ?? "begun" }));
    const short = found.filter(({ outcome }) => ofAmount.some((obstacle) => obstacle === outcome));
    if (short.length > 0) await deferRows(deps.db, { kind: first.kind, ids: short.map(({ id }) => id) });
    const key: QueueKey & { now: Date } = { ...first, now: deps.now() };
    if (found.some(({ outcome }) => outcome === "begun")) {
      if (!first.isFresh || short.length > 0) await resumeQueue(deps.db, key);
      continue;
    }
    const obstacle = found.map(({ outcome }) => outcome).find(isObstacle);
    // A chain whose watcher is behind is not taken by the sweep; its queues stay due.
    if (obstacle) await blockQueue(deps.db, { ...key, version: first.version, obstacle });
  }
}

const isObstacle = (outcome: Outcome): outcome is Obstacle => outcome !== "begun" && outcome !== "watcher_behind";

/** Queues that are blocked, for operators, the longest blocked first. */
export function listBlockedPayouts({ db }: Pick<Deps, "db">, limit: number): Promise<BlockedQueue[]> {
  return listBlockedQueues(db, limit);
}
