import { setImmediate as immediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { openCallBudget } from "../../../chains/call-budget.ts";
import type { CallPriority } from "../../../chains/call-priority.ts";

const MINUTE_MS = 60_000;

/** A budget whose clock advances by the waits alone. */
function makeBudget(callsPerMinute: number) {
  const clock = { now: 0 };
  const wait = async (ms: number) => {
    clock.now += ms;
  };
  return { clock, budget: openCallBudget(callsPerMinute, { now: () => clock.now, wait }) };
}

test("no minute has more calls than the budget, however many calls wait", async () => {
  const { budget, clock } = makeBudget(60);
  const times: number[] = [];
  for (let call = 0; call < 300; call += 1) {
    await budget.take("money");
    times.push(clock.now);
  }
  const perMinute = times.map((from) => times.filter((at) => at >= from && at < from + MINUTE_MS).length);
  expect(Math.max(...perMinute)).toBeLessThanOrEqual(60);
  expect(Math.max(...perMinute)).toBeGreaterThan(55);
});

test("a short budget has room for money, when verification and then convenience have to wait", async () => {
  const { budget } = makeBudget(120);
  const refusedAt = new Map<CallPriority, number>();
  for (let calls = 0; calls < 20; calls += 1) {
    for (const priority of ["money", "verification", "convenience"] as const)
      if (budget.waitMs(priority) > 0 && !refusedAt.has(priority)) refusedAt.set(priority, calls);
    await budget.take("money");
  }
  expect([...refusedAt.keys()]).toEqual(["convenience", "verification"]);
});

test("an unused budget saves up a sixth of a minute's calls", async () => {
  const { budget, clock } = makeBudget(600);
  for (let calls = 0; calls < 50; calls += 1) await budget.take("money");
  expect(budget.remaining()).toBeCloseTo(50);
  clock.now += 10 * MINUTE_MS;
  expect(budget.remaining()).toBe(100);
  expect(budget.waitMs("convenience")).toBe(0);
});

test("calls of one priority are made in the order in which they were asked for", async () => {
  const { budget } = makeBudget(30);
  const order: number[] = [];
  await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      await budget.take("money");
      order.push(index);
    }),
  );
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
});

test("several calls wait until the budget has room for all of them, and a call behind them does not overtake them", async () => {
  const { budget, clock } = makeBudget(60);
  expect([budget.waitMs("money", 10), budget.waitMs("money", 11)]).toEqual([0, 1_200]);
  await budget.take("money", 8);
  expect(budget.waitMs("money", 4)).toBe(2_400);
  const order: string[] = [];
  const note = (what: string) => () => order.push(what);
  await Promise.all([budget.take("money", 4).then(note("four")), budget.take("money").then(note("one"))]);
  expect(order).toEqual(["four", "one"]);
  expect(clock.now).toBe(3_600);
});

test("calls of less importance do not spend what a batch for money saves up for", async () => {
  const clock = { now: 0 };
  const sleeping: { until: number; wake: () => void }[] = [];
  const wait = (ms: number) => new Promise<void>((wake) => void sleeping.push({ until: clock.now + ms, wake }));
  const budget = openCallBudget(240, { now: () => clock.now, wait });
  await budget.take("money", 40);
  const order: string[] = [];
  const note = (what: string) => () => order.push(what);
  const verifications = Array.from({ length: 30 }, () => budget.take("verification").then(note("verification")));
  const money = budget.take("money", 16).then(note("money"));
  while (order.length < verifications.length + 1) {
    await immediate();
    const [next] = sleeping.sort((one, other) => one.until - other.until).splice(0, 1);
    clock.now = next?.until ?? clock.now;
    next?.wake();
  }
  await Promise.all([...verifications, money]);
  expect(order[0]).toBe("money");
});
