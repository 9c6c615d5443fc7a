import { expect, test } from "vitest";
import { createClock, isTrusted, LARGEST_SKEW_MS } from "../../../db/clock.ts";
import { openDb } from "../../../db/open.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { openTestDb } from "../../support/open-test-db.ts";

const { db } = await openTestDb(4);
const MINUTE = 60_000;

/** A machine whose wall clock is ahead by `ms` and whose monotonic clock starts at any value. */
const machineAhead = (ms: number) => ({
  wall: () => Date.now() + ms,
  monotonic: () => performance.now() + 123_456,
});

test.each([5 * MINUTE, -5 * MINUTE, 0])(
  "a process uses Postgres' time and knows that its machine is %d ms ahead",
  async (ahead) => {
    const clock = createClock(db, machineAhead(ahead));
    expect(clock.skewMs()).toBeUndefined();
    expect(isTrusted(clock)).toBe(false);
    await clock.measure();
    // Postgres runs on this machine.
    expect(Math.abs(clock.now().getTime() - Date.now())).toBeLessThan(1_000);
    expect(Math.abs((clock.skewMs() ?? 0) - ahead)).toBeLessThan(1_000);
    expect(isTrusted(clock)).toBe(ahead === 0);
  },
);

test("a step of the machine's clock does not change a process's time, and the next measurement reports the step", async () => {
  let step = 0;
  const clock = createClock(db, { wall: () => Date.now() + step, monotonic: () => performance.now() });
  await clock.measure();
  step = LARGEST_SKEW_MS + 5_000;
  expect(Math.abs(clock.now().getTime() - Date.now())).toBeLessThan(1_000);
  expect(isTrusted(clock)).toBe(true);
  await clock.measure();
  expect(isTrusted(clock)).toBe(false);
});

test("the clock uses the fastest of several measurements, so a pause of the process during one does no harm", async () => {
  let questions = 0;
  let frozen = 0;
  const monotonic = () => {
    questions += 1;
    // During the first measurement a minute passes for this process, and none for Postgres.
    if (questions === 2) frozen = MINUTE;
    return performance.now() + frozen;
  };
  const clock = createClock(db, { wall: () => Date.now(), monotonic });
  await clock.measure();
  expect(Math.abs(clock.now().getTime() - Date.now())).toBeLessThan(1_000);
});

test("an unavailable database leaves the last measurement as it was", async () => {
  const gone = openDb("postgres://127.0.0.1:1/none", { max: 1 });
  addCleanup(() => gone.destroy());
  const clock = createClock(gone, machineAhead(MINUTE));
  await expect(clock.measure()).rejects.toThrow();
  expect(clock.skewMs()).toBeUndefined();
  // There is no measurement yet; such a process is not ready.
  expect(clock.now().getTime()).toBeGreaterThan(Date.now() + MINUTE - 1_000);
});
