import type { Worker } from "bullmq";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createLog } from "../../../runtime/log.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { createClockGate } from "../../../workers/clock-gate.ts";

/** A gate whose clock the test trusts or not, and a worker that only says whether it is paused. */
function setUp() {
  const state = { isTrusted: true, isPaused: false };
  const gate = createClockGate({
    clock: { skewMs: () => 0 },
    isTrusted: () => state.isTrusted,
    metrics: createMetrics(new Registry(), "worker"),
    log: createLog({ level: "silent", role: "test" }),
  });
  const worker = {
    pause: async () => {
      state.isPaused = true;
    },
    resume: () => {
      state.isPaused = false;
    },
  } as unknown as Worker;
  const measure = (isTrusted: boolean) => {
    state.isTrusted = isTrusted;
    gate.update();
    return state.isPaused;
  };
  return { guard: () => gate.guard([worker]), measure, state };
}

test("workers are paused while the clock is not trusted", () => {
  const { guard, measure, state } = setUp();
  measure(true);
  guard();
  expect(state.isPaused).toBe(false);
  expect(measure(false)).toBe(true);
  expect(measure(false)).toBe(true);
  expect(measure(true)).toBe(false);
});

test("workers that begin after the clock was found wrong are paused until it is right", () => {
  const { guard, measure, state } = setUp();
  measure(true);
  measure(false);
  guard();
  expect(state.isPaused).toBe(true);
  expect(measure(false)).toBe(true);
  expect(measure(true)).toBe(false);
});
