import { pino } from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createWaiters, type Waiters } from "../../../api/waiters.ts";
import { createMetrics } from "../../../ops/metrics.ts";
import type { PaymentStatus } from "../../../payments/views.ts";

const status = (paymentId: string, stateVersion = 0): PaymentStatus => ({
  paymentId,
  state: "requires_action",
  isFinal: false,
  stateVersion,
  failureCode: null,
  info: null,
});

/** Waiters over a reader that records what it was asked. */
function setUp(
  read: (ids: readonly string[]) => Promise<PaymentStatus[]> = async (ids) => ids.map((id) => status(id)),
) {
  const metrics = createMetrics(new Registry(), "api");
  const asked: (readonly string[])[] = [];
  const waiters = createWaiters({
    metrics,
    log: pino({ level: "silent" }),
    listStatuses(ids) {
      asked.push(ids);
      return read(ids);
    },
  });
  opened.push(waiters);
  const open = (
    paymentId: string,
    { ms = 60_000, onGone = () => undefined }: Partial<Parameters<Waiters["open"]>[0]> = {},
  ) => waiters.open({ paymentId, ms, onGone });
  const waiting = async () => (await metrics.longPolls.get()).values[0]?.value;
  const ends = async () =>
    Object.fromEntries((await metrics.longPollEnds.get()).values.map(({ labels, value }) => [labels.reason, value]));
  return { waiters, open, asked, waiting, ends };
}

const opened: Waiters[] = [];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] });
});
afterEach(() => {
  for (const waiters of opened.splice(0)) waiters.close();
  vi.useRealTimers();
});

describe("waiters", () => {
  test("a message wakes those who wait for that payment, and nobody else", async () => {
    const { waiters, open, asked } = setUp();
    const watches = [open("pay_a"), open("pay_a"), open("pay_b")];
    const told = watches.map((watch) => watch.next());
    waiters.wake("pay_a");
    expect(await Promise.all(told.slice(0, 2))).toEqual([status("pay_a"), status("pay_a")]);
    expect(asked).toEqual([["pay_a"]]);
    expect(await Promise.race([told[2], "still waiting"])).toBe("still waiting");
  });

  test("messages that come together are read in one query, and of nobody's payments there is none", async () => {
    const { waiters, open, asked } = setUp();
    const told = ["pay_a", "pay_b"].map((id) => open(id).next());
    for (const id of ["pay_a", "pay_b", "pay_a", "pay_c"]) waiters.wake(id);
    await Promise.all(told);
    expect(asked).toEqual([["pay_a", "pay_b"]]);
  });

  test("a message between opening and waiting is not lost", async () => {
    const { waiters, open, asked } = setUp();
    const watch = open("pay_a");
    waiters.wake("pay_a");
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    expect(await watch.next()).toEqual(status("pay_a"));
  });

  test("without any message everything that is waited for is read once a second, in one query", async () => {
    const { open, asked } = setUp();
    const told = ["pay_a", "pay_b", "pay_c"].map((id) => open(id).next());
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await Promise.all(told)).toHaveLength(3);
    expect(asked).toEqual([["pay_a", "pay_b", "pay_c"]]);
  });

  test("a read that fails costs a second", async () => {
    let fails = true;
    const { waiters, open } = setUp(async (ids) => {
      if (fails) throw new Error("no database");
      return ids.map((id) => status(id));
    });
    const told = open("pay_a").next();
    waiters.wake("pay_a");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await Promise.race([told, "still waiting"])).toBe("still waiting");
    fails = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await told).toEqual(status("pay_a"));
  });

  test("a payment that changes while a read is under way is read again after it", async () => {
    const first = Promise.withResolvers<PaymentStatus[]>();
    let reads = 0;
    const { waiters, open } = setUp(async (ids) => (reads++ === 0 ? first.promise : ids.map((id) => status(id, 1))));
    const watch = open("pay_a");
    waiters.wake("pay_a");
    await vi.waitFor(() => expect(reads).toBe(1));
    waiters.wake("pay_a");
    first.resolve([status("pay_a", 0)]);
    expect((await watch.next())?.stateVersion).toBe(0);
    expect((await watch.next())?.stateVersion).toBe(1);
  });

  test("time that is up ends the wait", async () => {
    const { open, ends, waiting } = setUp(async () => []);
    const watch = open("pay_a", { ms: 3_000 });
    const told = watch.next();
    expect(await waiting()).toBe(1);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await told).toBeUndefined();
    watch.close();
    expect(await waiting()).toBe(0);
    expect(await ends()).toEqual({ timeout: 1 });
  });

  test("a client that leaves ends the wait, and nothing is read for it any more", async () => {
    const { open, asked, ends } = setUp();
    const gone = Promise.withResolvers<void>();
    const watch = open("pay_a", { onGone: (leave) => void gone.promise.then(leave) });
    const told = watch.next();
    gone.resolve();
    expect(await told).toBeUndefined();
    watch.close();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(asked).toEqual([]);
    expect(await ends()).toEqual({ gone: 1 });
  });

  test("draining ends all waits at once, also those that begin later", async () => {
    const { waiters, open, ends } = setUp();
    const early = open("pay_a");
    const told = early.next();
    waiters.drain();
    expect(await told).toBeUndefined();
    const late = open("pay_b");
    expect(await late.next()).toBeUndefined();
    early.close();
    late.close();
    expect(await ends()).toEqual({ drained: 1 });
  });

  test("the time held is what was waited, not what was worked", async () => {
    const { waiters, open } = setUp();
    const watch = open("pay_a");
    const told = watch.next();
    await vi.advanceTimersByTimeAsync(60);
    waiters.wake("pay_a");
    await told;
    await vi.advanceTimersByTimeAsync(200);
    expect(watch.close()).toBe(60);
  });

  test("thousands who wait are read once a second, a few hundred at a time", async () => {
    const { open, asked } = setUp();
    const told = Array.from({ length: 5_000 }, (_, index) => open(`pay_${index}`).next());
    await vi.advanceTimersByTimeAsync(1_000);
    await Promise.all(told);
    expect(asked.flat()).toHaveLength(5_000);
    expect(new Set(asked.flat()).size).toBe(5_000);
    expect(Math.max(...asked.map((ids) => ids.length))).toBe(250);
  });

  test("what is announced meanwhile is read before the thousands that are not", async () => {
    const { waiters, open, asked } = setUp(async (ids) => {
      if (asked.length === 1) waiters.wake("pay_4999");
      return ids.map((id) => status(id));
    });
    const told = Array.from({ length: 5_000 }, (_, index) => open(`pay_${index}`).next());
    await vi.advanceTimersByTimeAsync(1_000);
    await Promise.all(told);
    expect(asked[1]).toEqual(["pay_4999"]);
  });

  test("a database that is away is asked once a second, however many wait", async () => {
    const { open, asked } = setUp(async () => {
      throw new Error("no database");
    });
    for (let index = 0; index < 5_000; index += 1) void open(`pay_${index}`).next();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(asked).toHaveLength(2);
  });
});
