import { expect, onTestFinished, test, vi } from "vitest";
import { readInSequence } from "../../../workers/read-in-sequence.ts";

/** Reads that end at once, or when the test says so, and the order in which they began. */
function makeReads(names: readonly string[]) {
  const calls: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<string>>();
  const read = (name: string) => async () => {
    calls.push(name);
    return (await ends.get(name)?.promise) ?? name;
  };
  const reads = Object.fromEntries(names.map((name) => [name, read(name)]));
  const hold = (name: string) => {
    const end = Promise.withResolvers<string>();
    ends.set(name, end);
    // A read that is never begun handles no rejection.
    end.promise.catch(() => undefined);
    return end;
  };
  return { calls, hold, read: readInSequence(() => reads) };
}

test("calls of one round share its reads, and the next round reads again", async () => {
  const { calls, read } = makeReads(["a", "b"]);
  expect(await Promise.all([read("a"), read("b"), read("b")])).toEqual(["a", "b", "b"]);
  expect(calls).toEqual(["a", "b"]);
  await new Promise(setImmediate);
  expect(await read("b")).toBe("b");
  expect(calls).toEqual(["a", "b", "a", "b"]);
});

test("a read waits for the one before it", async () => {
  const { calls, hold, read } = makeReads(["a", "b"]);
  const a = hold("a");
  const both = Promise.all([read("a"), read("b")]);
  await new Promise(setImmediate);
  expect(calls).toEqual(["a"]);
  a.resolve("late");
  expect(await both).toEqual(["late", "b"]);
});

test("a read that fails or hangs keeps no other from its result, and does not begin again while it runs", async () => {
  const { calls, hold, read } = makeReads(["fails", "hangs", "c"]);
  const [fails, hangs] = [hold("fails"), hold("hangs")];
  fails.reject(new Error("a bad row"));
  await expect(read("fails")).rejects.toThrow("a bad row");
  const late = read("hangs");
  expect(await read("c")).toBe("c");
  await new Promise(setImmediate);
  expect(await read("c")).toBe("c");
  expect(calls).toEqual(["fails", "hangs", "c", "fails", "c"]);
  hangs.resolve("late");
  expect(await late).toBe("late");
});

test("at most five reads run at once", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const names = ["1", "2", "3", "4", "5", "6"];
  const { calls, hold, read } = makeReads(names);
  const held = names.slice(0, 5).map(hold);
  const last = read("6");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(calls).toHaveLength(5);
  held[0]?.resolve("1");
  expect(await last).toBe("6");
});

test("reads that a lock has stopped keep the others from no later round, and take turns", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const names = ["1", "2", "3", "4", "5", "6", "7"];
  const { calls, hold, read } = makeReads(names);
  const blocked = names.slice(0, 5);
  let held = blocked.map(hold);
  // Postgres ends the statements after their time limit.
  const endStatements = () => {
    for (const { reject } of held) reject(new Error("statement timeout"));
  };
  /** Reads every group in one round, and returns what the groups without a lock return within a scrape. */
  const scrape = async () => {
    calls.splice(0);
    const others = Promise.all([read("6"), read("7")]);
    for (const name of blocked) read(name).catch(() => undefined);
    let found: unknown;
    others.then((value) => (found = value));
    await vi.advanceTimersByTimeAsync(2_999);
    return found;
  };
  expect(await scrape()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(12_000);
  endStatements();
  await vi.advanceTimersByTimeAsync(3_000);
  held = blocked.map(hold);
  expect(await scrape()).toEqual(["6", "7"]);
  expect(calls).toEqual(["6", "7", "1", "2"]);
  // The statements of two rounds may overlap.
  expect(await scrape()).toEqual(["6", "7"]);
  expect(calls).toEqual(["6", "7"]);
  endStatements();
  await vi.advanceTimersByTimeAsync(3_000);
  held = blocked.map(hold);
  expect(await scrape()).toEqual(["6", "7"]);
  expect(calls).toEqual(["6", "7", "3", "4"]);
  // Without the lock, each read of a group that was late ends, and the next one begins.
  for (const end of held) end.resolve("late");
  await vi.advanceTimersByTimeAsync(3_000);
  await scrape();
  expect(calls).toEqual(["3", "4", "6", "7", "5", "1", "2"]);
  await scrape();
  expect(calls).toEqual(names);
});
