import { sql } from "kysely";
import type { Pool } from "./tables.ts";

/** The time of the database, as one process keeps it. Every process that keeps it has the same time, whatever its machine says. */
export type Clock = {
  /** Returns the database's time: what was measured last, carried on by the machine's monotonic clock. The machine's own time before the first measurement. */
  now(): Date;
  /** Measures anew. Throws what Postgres throws; then the last measurement stays. */
  measure(): Promise<void>;
  /** Returns how far the machine's clock is ahead of the database's, milliseconds; undefined before the first measurement. */
  skewMs(): number | undefined;
};

/** The clocks of a machine, milliseconds: `wall` is set by people and by NTP, `monotonic` by nobody. */
export type Machine = { wall: () => number; monotonic: () => number };

/** Questions of one measurement; the one that was answered fastest counts. */
const SAMPLES = 3;

const thisMachine: Machine = { wall: () => Date.now(), monotonic: () => performance.now() };

/** SQL: a time from now by Postgres' own clock: a process with a wrong clock must not hold a lease for longer. */
export function fromNow(ms: number) {
  return sql<Date>`clock_timestamp() + ${ms}::float8 * interval '1 millisecond'`;
}

/** Makes a clock that has measured nothing yet. */
export function createClock(db: Pool, machine: Machine = thisMachine): Clock {
  let measured: { ahead: number; skewMs: number } | undefined;
  return {
    now: () => new Date(measured ? machine.monotonic() + measured.ahead : machine.wall()),
    skewMs: () => measured?.skewMs,
    async measure() {
      // On one connection: a wait for the pool is no part of the way to Postgres and back.
      const samples = await db.connection().execute(async (connection) => {
        const taken = [];
        for (let count = 0; count < SAMPLES; count += 1) taken.push(await takeSample(connection, machine));
        return taken;
      });
      const [best] = samples.toSorted((a, b) => a.roundTripMs - b.roundTripMs);
      if (best) measured = best;
    },
  };
}

/** One question to Postgres; its answer is taken to be half the way old. */
async function takeSample(db: Pool, machine: Machine) {
  const began = machine.monotonic();
  const { rows } = await sql<{ at: Date }>`select clock_timestamp() as at`.execute(db);
  const ended = machine.monotonic();
  const wall = machine.wall();
  const at = rows[0]?.at.getTime();
  if (at === undefined) throw new Error("Postgres did not say what time it is");
  const roundTripMs = ended - began;
  const ahead = at - (began + ended) / 2;
  return { roundTripMs, ahead, skewMs: wall - (ended + ahead) };
}

/** A machine whose clock differs from the database's by more than this does no work, milliseconds. */
export const LARGEST_SKEW_MS = 30_000;

/** True when the clock has been measured and the machine's own is not far from it. */
export function isTrusted(clock: Pick<Clock, "skewMs">): boolean {
  const skewMs = clock.skewMs();
  return skewMs !== undefined && Math.abs(skewMs) <= LARGEST_SKEW_MS;
}

/** How often a process measures, milliseconds; more often as long as it has not succeeded. */
const MEASURE_EVERY_MS = 10_000;
const FIRST_EVERY_MS = 500;

/**
 * Keeps a clock measured until `stop` is called. `onMeasured` is called after each measurement, `onError` when Postgres
 * did not answer. Resolves with the first try, whether it has succeeded or not.
 */
export async function keepMeasured(
  clock: Clock,
  on: { measured: () => void; error: (cause: unknown) => void },
): Promise<() => void> {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const run = async (): Promise<void> => {
    await clock.measure().then(on.measured, on.error);
    if (stopped) return;
    timer = setTimeout(() => void run(), clock.skewMs() === undefined ? FIRST_EVERY_MS : MEASURE_EVERY_MS).unref();
  };
  await run();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
