import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createLog } from "../../../runtime/log.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { applyDueClaims, countHeld } from "../../../signer/apply-due-claims.ts";
import { workerActor } from "../../../signer/audit/entries.ts";
import { claimDestinations } from "../../../signer/claim-destinations.ts";
import { createStore } from "../../../signer/create-store.ts";
import { findDestinationRefusal } from "../../../signer/destinations.ts";
import { noteRun } from "../../../signer/stops.ts";

const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
const [old, fresh] = ["d1", "d2"].map((byte) => `0x${byte.repeat(20)}`) as [string, string];
const merchantId = "mrch_1";
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** A signer that has run for a minute, with a destination that waits for 72 hours. */
function setUp() {
  let now = Date.parse("2026-03-01T00:00:00Z");
  const lines: string[] = [];
  const log = createLog({ level: "info", role: "signer" }, { write: (line) => void lines.push(line) });
  const limits = { paused: false, destinationWaitingHours: 72, assets: {}, operators: [] };
  const store = createStore(":memory:", { command: "init", at: new Date(now) });
  const clock = () => new Date(now);
  const caller = workerActor("socket");
  const metrics = createMetrics(new Registry(), "signer");
  const deps = { store, readLimits: () => limits, deployment: "test", caller, log, metrics, now: clock };
  const report = (receiver: string, of = merchantId) =>
    claimDestinations(deps, {
      destinations: [{ merchantId: of, asset, receiver, state: "applied" }],
      statements: [],
      approvalKeys: [],
      revokedKeys: [],
    })?.destinations[0];
  /** What the process does at its start and each second. */
  const tick = () => {
    noteRun(deps, clock());
    applyDueClaims(deps);
  };
  const isApplied = () => findDestinationRefusal(store, { merchantId, asset, receiver: fresh }) === undefined;
  const runFor = (ms: number) => {
    for (const end = now + ms; now < end; now += MINUTE) tick();
    tick();
  };
  const stopFor = (ms: number) => {
    now += ms;
  };
  const held = () => countHeld(store, clock());
  tick();
  report(old);
  report(fresh);
  runFor(MINUTE);
  return { lines, report, tick, runFor, stopFor, isApplied, held, now: () => now };
}

test("a claim that became due while the signer was stopped waits for an hour after its start", () => {
  const { lines, report, tick, runFor, stopFor, isApplied, held, now } = setUp();
  stopFor(80 * HOUR);
  const started = now();
  tick();
  expect([isApplied(), held()]).toEqual([false, 1]);
  expect(lines.join("")).toContain("signer was stopped");
  // A report of a worker does not let it apply either, and says when it will.
  expect(report(fresh)).toEqual({ state: "waiting", appliesAt: started + HOUR });
  runFor(59 * MINUTE);
  expect(isApplied()).toBe(false);
  runFor(MINUTE);
  expect([isApplied(), held()]).toEqual([true, 0]);
});

test("the first destination of a new merchant waits until the hour after a stop has passed", () => {
  const { report, tick, runFor, stopFor, now } = setUp();
  stopFor(80 * HOUR);
  const started = now();
  tick();
  expect(report(fresh, "mrch_2")).toEqual({ state: "waiting", appliesAt: started + HOUR });
  runFor(HOUR);
  expect(report(fresh, "mrch_2")).toEqual({ state: "applied", appliesAt: null });
});

test("a claim that becomes due soon after the start waits for the same hour", () => {
  const { runFor, stopFor, isApplied } = setUp();
  stopFor(72 * HOUR - 5 * MINUTE);
  runFor(30 * MINUTE);
  expect(isApplied()).toBe(false);
  runFor(30 * MINUTE);
  expect(isApplied()).toBe(true);
});

test("a restart delays nothing", () => {
  const { runFor, stopFor, isApplied, held } = setUp();
  runFor(72 * HOUR - 5 * MINUTE);
  stopFor(8 * MINUTE);
  runFor(0);
  expect([isApplied(), held()]).toEqual([true, 0]);
});

test("a signer that crashes again and again does not hold a claim for ever", () => {
  const { runFor, stopFor, isApplied } = setUp();
  stopFor(80 * HOUR);
  for (let crash = 0; crash < 12; crash += 1) {
    expect(isApplied()).toBe(false);
    runFor(0);
    stopFor(5 * MINUTE);
  }
  runFor(0);
  expect(isApplied()).toBe(true);
});

test("a request that arrives before a suspended machine has noticed its stop lets nothing apply", () => {
  const { report, stopFor, isApplied, now } = setUp();
  stopFor(80 * HOUR);
  expect(report(fresh)).toEqual({ state: "waiting", appliesAt: now() + HOUR });
  expect(isApplied()).toBe(false);
});

test("a clock that was a day ahead holds claims for an hour after its correction", () => {
  const { report, tick, runFor, stopFor, now } = setUp();
  stopFor(24 * HOUR);
  tick();
  stopFor(-24 * HOUR);
  const corrected = now();
  // A request may arrive before the process has noticed the correction.
  expect(report(fresh, "mrch_2")).toEqual({ state: "waiting", appliesAt: corrected + HOUR });
  runFor(59 * MINUTE);
  expect(report(fresh, "mrch_2")).toEqual({ state: "waiting", appliesAt: corrected + HOUR });
  runFor(MINUTE);
  expect(report(fresh, "mrch_2")).toEqual({ state: "applied", appliesAt: null });
});

test("a clock that goes back during the hour after a stop does not shorten it, and one that goes back at another time holds nothing", () => {
  const { lines, report, tick, runFor, stopFor } = setUp();
  stopFor(80 * HOUR);
  tick();
  stopFor(-2 * HOUR);
  runFor(59 * MINUTE);
  expect(report(fresh, "mrch_2")?.state).toBe("waiting");
  runFor(MINUTE);
  expect(report(fresh, "mrch_2")?.state).toBe("applied");
  const before = lines.length;
  // The stop is older than the time that the clock goes back to.
  runFor(2 * HOUR);
  stopFor(-HOUR);
  tick();
  expect(report(fresh, "mrch_3")?.state).toBe("applied");
  expect(lines.slice(before).join("")).not.toContain("nothing that waits applies");
});
