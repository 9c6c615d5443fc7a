import { sql } from "kysely";
import type { Pool } from "./tables.ts";

/** The database's time, as one process measures it. All processes therefore agree on the time, whatever their machines' clocks show. */
export type Clock = {
  /**
   * Returns the database's time: the last measurement plus the machine's monotonic clock. Before the first measurement it
   * returns the machine's own time.
   */
  now(): Date;
  /** Measures the database's time. Throws the error of Postgres and then keeps the last measurement. */
  measure(): Promise<void>;
  /** Returns how far the machine's clock is ahead of the database's, milliseconds. Undefined before the first measurement. */
  skewMs(): number | undefined;
};

/** The clocks of a machine, milliseconds. People and NTP adjust `wall`; `monotonic` is never adjusted. */
export type Machine = { wall: () => number; monotonic: () => number };

/** Samples of one measurement. The sample with the shortest round trip counts. */
const SAMPLES = 3;

const thisMachine: Machine = { wall: () => Date.now(), monotonic: () => performance.now() };

/** SQL: a time from now on Postgres' own clock, so that a process with a wrong clock cannot hold a lease for longer. */
export function fromNow(ms: number) {
  return sql<Date>`clock_timestamp() + ${ms}::float8 * interval '1 millisecond'`;
}

/** Creates a clock without a measurement. */
export function createClock(db: Pool, machine: Machine = thisMachine): Clock {
  let measured: { ahead: number; skewMs: number } | undefined;
  return {
    now: () => new Date(measured ? machine.monotonic() + measured.ahead : machine.wall()),
    skewMs: () => measured?.skewMs,
    async measure() {
      // On one connection, because a wait for the pool is not part of the round trip to Postgres.
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

/** Asks Postgres for the time once. The response is taken to be half a round trip old. */
async function takeSample(db: Pool, machine: Machine) {
  const began = machine.monotonic();
  const { rows } = await sql<{ at: Date }>`select clock_timestamp() as at`.execute(db);
  const ended = machine.monotonic();
  const wall = machine.wall();
  const at = rows[0]?.at.getTime();
  if (at === undefined) throw new Error("Postgres returned no time");
  const roundTripMs = ended - began;
  const ahead = at - (began + ended) / 2;
  return { roundTripMs, ahead, skewMs: wall - (ended + ahead) };
}

/** The largest difference between the machine's and the database's clock with which a process works, milliseconds. */
export const LARGEST_SKEW_MS = 30_000;

/** Returns true when the clock has been measured and the machine's own clock is within `LARGEST_SKEW_MS` of it. */
export function isTrusted(clock: Pick<Clock, "skewMs">): boolean {
  const skewMs = clock.skewMs();
  return skewMs !== undefined && Math.abs(skewMs) <= LARGEST_SKEW_MS;
}

/** The interval between measurements, and the shorter one until the first measurement succeeds, milliseconds. */
const MEASURE_EVERY_MS = 10_000;
const FIRST_EVERY_MS = 500;

/**
 * Measures a clock periodically until the returned function is called. Calls `on.measured` after each measurement and
 * `on.error` when Postgres does not respond. Resolves after the first measurement, whether or not it succeeds.
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
