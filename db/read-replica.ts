import { repeatEvery } from "../runtime/repeat.ts";
import { withTimeout } from "../runtime/timeout.ts";
import { findDataTime, type PositionSample, readPrimaryPosition, readReplicaPosition } from "./replica-position.ts";
import type { Pool } from "./tables.ts";

/** The greatest age of the data that a replica may serve, milliseconds. */
const MAX_LAG_MS = 5_000;
/** How often the age is measured, milliseconds. */
const MEASURE_EVERY_MS = 1_000;
/** The longest that a read may take on the replica before the primary repeats it, milliseconds. */
export const REPLICA_READ_MS = 3_000;

/** Why the primary serves a read, or that the replica does. `refused`: the replica knows less than the caller names. */
export type ReplicaOutcome = "served" | "behind" | "conflict" | "failed" | "refused";

export type ReadReplica = {
  /**
   * Runs a read on the replica. Returns undefined when the replica cannot serve it: its data is older than `MAX_LAG_MS`, or
   * the read fails or is refused. The caller then runs it on the primary.
   */
  attempt<T extends { ok: boolean }>(read: (db: Pool) => Promise<T>): Promise<Extract<T, { ok: true }> | undefined>;
  /** Stops measuring. */
  close(): void;
};

/**
 * Measures the age of a replica's data, and runs reads on it while that is below `MAX_LAG_MS`. Its data is as old as the
 * primary's newest position that it has replayed, so that a replica which has lost its connection to the primary also counts
 * as behind.
 * @param options.onRead called for each read
 * @param options.onLag called after each measurement with the age in seconds, or infinity
 * @param options.onChange called when the replica begins or ceases to serve; `error` is why, unless it is only behind
 */
export function openReadReplica(options: {
  primary: Pool;
  replica: Pool;
  onRead: (outcome: ReplicaOutcome) => void;
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
  return {
    async attempt<T extends { ok: boolean }>(read: (db: Pool) => Promise<T>) {
      if (lagMs() > MAX_LAG_MS) return void options.onRead("behind");
      try {
        const result = await withTimeout(read(replica), REPLICA_READ_MS, "a read of the replica");
        options.onRead(result.ok ? "served" : "refused");
        return result.ok ? (result as Extract<T, { ok: true }>) : undefined;
      } catch (error) {
        const isConflict = isRecoveryConflict(error);
        options.onRead(isConflict ? "conflict" : "failed");
        // The next measurement decides whether the replica can be reached again.
        if (!isConflict) fail(error);
        return undefined;
      }
    },
    close: stop,
  };
}

/**
 * SQLSTATE serialization_failure: on a standby, a statement that was cancelled because it still needed rows which the primary
 * has removed ("canceling statement due to conflict with recovery").
 */
function isRecoveryConflict(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "40001" || error.code === "40P01");
}
