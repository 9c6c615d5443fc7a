import { describe, expect, test } from "vitest";
import { singleFlight } from "../../../transfers/single-flight.ts";

/** Creates a coalesced function whose runs the test ends, and records the runs and whether two of them overlapped. */
function makeRuns() {
  const begun: { key: string; end(value: string): void; fail(cause: Error): void }[] = [];
  const now = new Map<string, number>();
  let overlapped = false;
  const call = singleFlight(async (key: string) => {
    now.set(key, (now.get(key) ?? 0) + 1);
    if ((now.get(key) ?? 0) > 1) overlapped = true;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    begun.push({ key, end: resolve, fail: reject });
    return promise.finally(() => now.set(key, (now.get(key) ?? 0) - 1));
  }, "served");
  return { call, begun, overlapped: () => overlapped };
}

/** Lets all pending promise callbacks run. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("callers of one key", () => {
  test("callers of one key that call during a run share the next run, for which one of them waits", async () => {
    const { call, begun, overlapped } = makeRuns();
    const first = call("a");
    const others = [call("a"), call("a"), call("a")];
    await settle();
    expect(begun).toHaveLength(1);
    expect(await Promise.all(others.slice(1))).toEqual(["served", "served"]);
    begun[0]?.end("one");
    expect(await first).toBe("one");
    await settle();
    expect(begun).toHaveLength(2);
    begun[1]?.end("two");
    expect(await others[0]).toBe("two");
    expect(overlapped()).toBe(false);
  });

  test("callers of one key do not wait for runs of another key", async () => {
    const { call, begun } = makeRuns();
    const [a, b] = [call("a"), call("b")];
    expect(begun.map(({ key }) => key)).toEqual(["a", "b"]);
    begun[1]?.end("b");
    expect(await b).toBe("b");
    begun[0]?.end("a");
    expect(await a).toBe("a");
  });

  test("callers of one key get the error of their own run, and the next run proceeds", async () => {
    const { call, begun } = makeRuns();
    const first = call("a");
    const second = call("a");
    begun[0]?.fail(new Error("no chain"));
    await expect(first).rejects.toThrow("no chain");
    await settle();
    begun[1]?.fail(new Error("no database"));
    await expect(second).rejects.toThrow("no database");
    const third = call("a");
    begun[2]?.end("three");
    expect(await third).toBe("three");
  });

  test("a run of one key begins after each call, over 300 random schedules", async () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      let state = seed;
      const random = (below: number) => {
        state = (state * 48_271) % 2_147_483_647;
        return state % below;
      };
      let clock = 0;
      let running = 0;
      let last = 0;
      const calls: number[] = [];
      const call = singleFlight(async () => {
        const begunAt = ++clock;
        running += 1;
        expect(running, `seed ${seed}: runs of one key overlap`).toBe(1);
        for (let ticks = random(4); ticks > 0; ticks -= 1) await settle();
        running -= 1;
        last = begunAt;
        return begunAt;
      }, 0);
      const callers = Array.from({ length: 1 + random(12) }, async () => {
        for (let ticks = random(8); ticks > 0; ticks -= 1) await settle();
        const calledAt = ++clock;
        calls.push(calledAt);
        const begunAt = await call("a");
        if (begunAt !== 0) expect(begunAt, `seed ${seed}`).toBeGreaterThan(calledAt);
      });
      await Promise.all(callers);
      expect(last, `seed ${seed}: a call has no run`).toBeGreaterThan(Math.max(...calls));
    }
  });

  test("callers of one key that call again as soon as their run ends do not start a second concurrent run", async () => {
    const { call, begun, overlapped } = makeRuns();
    const first = call("a");
    const second = call("a");
    const third = first.then(() => call("a"));
    begun[0]?.end("one");
    await settle();
    expect(overlapped()).toBe(false);
    for (const run of begun.slice(1)) run.end("two");
    await settle();
    for (const run of begun.slice(2)) run.end("three");
    await Promise.all([second, third]);
  });
});
