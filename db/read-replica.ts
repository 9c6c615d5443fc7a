import { repeatEvery } from "../runtime/repeat.ts";
import { TimeoutError, withTimeout } from "../runtime/timeout.ts";
import { createTransientCheck } from "../runtime/transient-errors.ts";
import { findDataTime, type PositionSample, readPrimaryPosition, readReplicaPosition } from "./replica-position.ts";
import type { Pool } from "./tables.ts";

/** The greatest age of the data that a replica may serve, milliseconds. */
const MAX_LAG_MS = 5_000;
/** How often the age is measured, milliseconds. */
const MEASURE_EVERY_MS = 1_000;
/** The longest that a read may take on the replica before the primary repeats it, milliseconds. */
export const REPLICA_READ_MS = 3_000;

/**
 * Why the primary serves a read, or that the replica does. `conflict`: replaying has cancelled it. `slow`: it has reached its
 * time limit. `failed`: any other error. `refused`: the replica knows less than the caller names.
 */
export type ReplicaOutcome = (typeof replicaOutcomes)[number];
export const replicaOutcomes = ["served", "behind", "conflict", "slow", "failed", "refused"] as const;

export type ReadReplica = {
  /**
   * Runs a read on the replica. Returns undefined when the replica cannot serve it: its data is older than `MAX_LAG_MS`, or
   * the read fails or is refused. The caller then runs it on the primary.
   */
  attempt<T extends { ok: boolean }>(read: (db: Pool) => Promise<T>): Promise<Extract<T, { ok: true }> | undefined>;
  /** Reports the error of a read that `attempt` has begun on the replica, and that the primary continues. */
  abandon(error: unknown): void;
  /** Stops measuring. */
  close(): void;
};

/**
 * Measures the age of a replica's data, and runs reads on it while that is below `MAX_LAG_MS`. Its data is as old as the
 * primary's newest position that it has replayed, so that a replica which has lost its connection to the primary also counts
 * as behind.
 * @param options.onRead called for each read, with the error that the read ended with on the replica
 * @param options.onLag called after each measurement with the age in seconds, or infinity
 * @param options.onChange called when the replica begins or ceases to serve; `error` is why, unless it is only behind
 */
export function openReadReplica(options: {
  primary: Pool;
  replica: Pool;
  onRead: (outcome: ReplicaOutcome, error?: unknown) => void;
  onLag: (seconds: number) => void;
  onChange: (isUsed: boolean, error: unknown) => void;
}): ReadReplica {
  const { primary, replica } = options;
  let samples: PositionSample[] = [];
  /** The replica's data is at least as new as this moment. */
  let dataTime = Number.NEGATIVE_INFINITY;
  let wasUsed: boolean | undefined;
  const lagMs = () => performance.now() - dataTime;
  const report = (error?: unknown) => {
    options.onLag(lagMs() / 1_000);
    const isUsed = lagMs() <= MAX_LAG_MS;
    if (isUsed !== wasUsed) options.onChange(isUsed, error);
    wasUsed = isUsed;
  };
  const measure = async () => {
    const at = performance.now();
    samples.push({ at, ...(await readPrimaryPosition(primary)) });
    samples = samples.filter((sample) => at - sample.at <= 2 * MAX_LAG_MS);
    dataTime = findDataTime(samples, await readReplicaPosition(replica)) ?? Number.NEGATIVE_INFINITY;
  };
  const fail = (error: unknown) => {
    dataTime = Number.NEGATIVE_INFINITY;
    report(error);
  };
  const stop = repeatEvery(MEASURE_EVERY_MS, () =>
    withTimeout(measure(), MAX_LAG_MS, "measuring the replica's lag").then(() => report(), fail),
  );
  const abandon = (error: unknown) => {
    const outcome = classify(error);
    options.onRead(outcome, error);
    // One slow read says nothing about others. The next measurement decides whether the replica can be reached.
    if (outcome === "failed" && isLost(error)) fail(error);
  };
  return {
    async attempt<T extends { ok: boolean }>(read: (db: Pool) => Promise<T>) {
      if (lagMs() > MAX_LAG_MS) return void options.onRead("behind");
      try {
        const result = await withTimeout(read(replica), REPLICA_READ_MS, "a read of the replica");
        options.onRead(result.ok ? "served" : "refused");
        return result.ok ? (result as Extract<T, { ok: true }>) : undefined;
      } catch (error) {
        abandon(error);
        return undefined;
      }
    },
    abandon,
    close: stop,
  };
}

/** Returns true when a connection, and not a single statement, is what has failed. */
const isLost = createTransientCheck(() => false);

function classify(error: unknown): ReplicaOutcome {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  // SQLSTATE serialization_failure: on a standby, a statement that was cancelled because it still needed rows which the
  // primary has removed ("canceling statement due to conflict with recovery").
  if (code === "40001" || code === "40P01") return "conflict";
  // SQLSTATE query_canceled: the statement's timeout.
  return code === "57014" || error instanceof TimeoutError ? "slow" : "failed";
}
