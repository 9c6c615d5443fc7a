import { pino } from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createWaiters, type Waiters } from "../../../../api/polling/waiters.ts";
import type { PaymentStatus } from "../../../../payments/views.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";

const status = (paymentId: string, stateVersion = 0): PaymentStatus => ({
  paymentId,
  state: "requires_action",
  isFinal: false,
  stateVersion,
  changedAt: new Date(0),
  failureCode: null,
  info: null,
});

/** Creates waiters over a reader that records the ids of each query. */
function setUp(
  read: (ids: readonly string[]) => Promise<PaymentStatus[]> = async (ids) => ids.map((id) => status(id)),
) {
  const metrics = createMetrics(new Registry(), "api");
  const queries: (readonly string[])[] = [];
  const waiters = createWaiters({
    metrics,
    log: pino({ level: "silent" }),
    listStatuses(ids) {
      queries.push(ids);
      return read(ids);
    },
  });
  opened.push(waiters);
  const open = (
    paymentId: string,
    { ms = 60_000, onGone = () => undefined, held = () => undefined }: Partial<Parameters<Waiters["open"]>[0]> = {},
  ) => waiters.open({ paymentId, ms, onGone, held });
  const waiting = async () => (await metrics.longPolls.get()).values[0]?.value;
  const ends = async () =>
    Object.fromEntries((await metrics.longPollEnds.get()).values.map(({ labels, value }) => [labels.reason, value]));
  return { waiters, open, queries, waiting, ends };
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
  test("a message wakes only the callers that wait for its payment", async () => {
    const { waiters, open, queries } = setUp();
    const watches = [open("pay_a"), open("pay_a"), open("pay_b")];
    const answers = watches.map((watch) => watch.next());
    waiters.wake("pay_a");
    expect(await Promise.all(answers.slice(0, 2))).toEqual([status("pay_a"), status("pay_a")]);
    expect(queries).toEqual([["pay_a"]]);
    expect(await Promise.race([answers[2], "still waiting"])).toBe("still waiting");
  });

  test("messages that arrive together cause one query, which omits payments that no caller waits for", async () => {
    const { waiters, open, queries } = setUp();
    const answers = ["pay_a", "pay_b"].map((id) => open(id).next());
    for (const id of ["pay_a", "pay_b", "pay_a", "pay_c"]) waiters.wake(id);
    await Promise.all(answers);
    expect(queries).toEqual([["pay_a", "pay_b"]]);
  });

  test("all payments that a caller waits for are read when their changes may have been missed", async () => {
    const { waiters, open, queries } = setUp();
    waiters.wakeAll();
    const answers = ["pay_a", "pay_b"].map((id) => open(id).next());
    waiters.wakeAll();
    expect(await Promise.all(answers)).toEqual([status("pay_a"), status("pay_b")]);
    expect(queries).toEqual([["pay_a", "pay_b"]]);
  });

  test("a message that arrives between open and next is not lost", async () => {
    const { waiters, open, queries } = setUp();
    const watch = open("pay_a");
    waiters.wake("pay_a");
    await vi.waitFor(() => expect(queries).toHaveLength(1));
    expect(await watch.next()).toEqual(status("pay_a"));
  });

  test("the waiters read nothing while no payment changes", async () => {
    const { open, queries } = setUp();
    const watches = ["pay_a", "pay_b", "pay_c"].map((id) => open(id, { ms: 10_000 }));
    const answers = watches.map((watch) => watch.next());
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await Promise.all(answers)).toEqual([undefined, undefined, undefined]);
    expect(queries).toEqual([]);
  });

  test("a failed read delays the answer by one second", async () => {
    let fails = true;
    const { waiters, open } = setUp(async (ids) => {
      if (fails) throw new Error("no database");
      return ids.map((id) => status(id));
    });
    const answers = open("pay_a").next();
    waiters.wake("pay_a");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await Promise.race([answers, "still waiting"])).toBe("still waiting");
    fails = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await answers).toEqual(status("pay_a"));
  });

  test("a payment that changes during a read is read again afterwards", async () => {
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

  test("a wait for a higher version continues when an older or the same one is read", async () => {
    let version = 1;
    const { waiters, open, queries } = setUp(async (ids) => ids.map((id) => status(id, version)));
    const watch = open("pay_a");
    const answers = watch.next(1);
    for (version of [0, 1]) {
      waiters.wake("pay_a");
      await vi.waitFor(() => expect(queries).toHaveLength(version + 1));
    }
    expect(await Promise.race([answers, "still waiting"])).toBe("still waiting");
    version = 2;
    waiters.wake("pay_a");
    expect(await answers).toEqual(status("pay_a", 2));
  });

  test("a timeout ends the wait", async () => {
    const { open, ends, waiting } = setUp(async () => []);
    const watch = open("pay_a", { ms: 3_000 });
    const answers = watch.next();
    expect(await waiting()).toBe(1);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await answers).toBeUndefined();
    watch.close();
    expect(await waiting()).toBe(0);
    expect(await ends()).toEqual({ timeout: 1 });
  });

  test("a client that disconnects ends the wait, and the waiters stop reading its payment", async () => {
    const { open, queries, ends } = setUp();
    const gone = Promise.withResolvers<void>();
    const watch = open("pay_a", { onGone: (leave) => void gone.promise.then(leave) });
    const answers = watch.next();
    gone.resolve();
    expect(await answers).toBeUndefined();
    watch.close();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(queries).toEqual([]);
    expect(await ends()).toEqual({ gone: 1 });
  });

  test("draining ends all waits at once, including those that begin later", async () => {
    const { waiters, open, ends } = setUp();
    const early = open("pay_a");
    const answers = early.next();
    waiters.drain();
    expect(await answers).toBeUndefined();
    const late = open("pay_b");
    expect(await late.next()).toBeUndefined();
    early.close();
    late.close();
    expect(await ends()).toEqual({ drained: 1 });
  });

  test("the reported hold time covers the wait and excludes the work after it", async () => {
    const { waiters, open } = setUp();
    const held = vi.fn();
    const watch = open("pay_a", { held });
    const answers = watch.next();
    await vi.advanceTimersByTimeAsync(60);
    waiters.wake("pay_a");
    await answers;
    await vi.advanceTimersByTimeAsync(200);
    watch.close();
    expect(held.mock.calls).toEqual([[60]]);
  });

  test("thousands of changed payments are read in batches of 250", async () => {
    const { waiters, open, queries } = setUp();
    const ids = Array.from({ length: 5_000 }, (_, index) => `pay_${index}`);
    const answers = ids.map((id) => open(id).next());
    for (const id of ids) waiters.wake(id);
    await Promise.all(answers);
    expect(queries.flat()).toEqual(ids);
    expect(Math.max(...queries.map((batch) => batch.length))).toBe(250);
  });

  test("the waiters query an unavailable database once a second, however many payments have changed", async () => {
    const { waiters, open, queries } = setUp(async () => {
      throw new Error("no database");
    });
    for (let index = 0; index < 5_000; index += 1) {
      void open(`pay_${index}`).next();
      waiters.wake(`pay_${index}`);
    }
    for (let second = 0; second < 10; second += 1) {
      await vi.advanceTimersByTimeAsync(1_000);
      await new Promise(setImmediate);
    }
    expect(queries.length).toBeGreaterThan(5);
    expect(queries.length).toBeLessThanOrEqual(11);
  });
});
