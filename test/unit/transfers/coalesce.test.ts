import { describe, expect, test } from "vitest";
import { coalesce } from "../../../transfers/coalesce.ts";

/** A run that a test ends by hand, and what was seen of all of them. */
function makeRuns() {
  const begun: { key: string; end(value: string): void; fail(cause: Error): void }[] = [];
  const now = new Map<string, number>();
  let overlapped = false;
  const call = coalesce(async (key: string) => {
    now.set(key, (now.get(key) ?? 0) + 1);
    if ((now.get(key) ?? 0) > 1) overlapped = true;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    begun.push({ key, end: resolve, fail: reject });
    return promise.finally(() => now.set(key, (now.get(key) ?? 0) - 1));
  });
  return { call, begun, overlapped: () => overlapped };
}

/** Lets everything that is ready to go on go on. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("callers of one key", () => {
  test("that come during a run share the next one, which begins after the run has ended", async () => {
    const { call, begun, overlapped } = makeRuns();
    const first = call("a");
    const others = [call("a"), call("a"), call("a")];
    await settle();
    expect(begun).toHaveLength(1);
    begun[0]?.end("one");
    expect(await first).toBe("one");
    await settle();
    expect(begun).toHaveLength(2);
    begun[1]?.end("two");
    expect(await Promise.all(others)).toEqual(["two", "two", "two"]);
    expect(overlapped()).toBe(false);
  });

  test("never wait for another key", async () => {
    const { call, begun } = makeRuns();
    const [a, b] = [call("a"), call("b")];
    expect(begun.map(({ key }) => key)).toEqual(["a", "b"]);
    begun[1]?.end("b");
    expect(await b).toBe("b");
    begun[0]?.end("a");
    expect(await a).toBe("a");
  });

  test("each hear of the failure of their own run, and the next run goes ahead", async () => {
    const { call, begun } = makeRuns();
    const first = call("a");
    const second = [call("a"), call("a")];
    begun[0]?.fail(new Error("no chain"));
    await expect(first).rejects.toThrow("no chain");
    await settle();
    begun[1]?.fail(new Error("no database"));
    const ends = await Promise.allSettled(second);
    expect(ends.map((end) => end.status === "rejected" && String(end.reason))).toEqual([
      "Error: no database",
      "Error: no database",
    ]);
    const third = call("a");
    begun[2]?.end("three");
    expect(await third).toBe("three");
  });

  test("whoever calls, a run that begins afterwards answers, over 300 random schedules", async () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      let state = seed;
      const random = (below: number) => {
        state = (state * 48_271) % 2_147_483_647;
        return state % below;
      };
      let clock = 0;
      let running = 0;
      const call = coalesce(async () => {
        const begunAt = ++clock;
        running += 1;
        expect(running, `seed ${seed}: runs of one key overlap`).toBe(1);
        for (let ticks = random(4); ticks > 0; ticks -= 1) await settle();
        running -= 1;
        return begunAt;
      });
      const callers = Array.from({ length: 1 + random(12) }, async () => {
        for (let ticks = random(8); ticks > 0; ticks -= 1) await settle();
        const calledAt = ++clock;
        expect(await call("a"), `seed ${seed}`).toBeGreaterThan(calledAt);
      });
      await Promise.all(callers);
    }
  });

  test("that call again the moment their run ends do not begin one beside the next", async () => {
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
