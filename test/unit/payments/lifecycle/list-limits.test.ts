import { expect, test, vi } from "vitest";
import { done } from "../../../../payments/error-codes.ts";
import { createListLimits } from "../../../../payments/lifecycle/list-limits.ts";

/** Starts lists that run until the test ends them. Ten connections are five lists, two of one account. */
function open() {
  const run = createListLimits(10);
  const begun: { account: string; end(): void }[] = [];
  const start = (account: string) =>
    run(account, async () => {
      const { promise, resolve: end } = Promise.withResolvers<void>();
      begun.push({ account, end });
      await promise;
      return done(account);
    });
  return { run, begun, start, accounts: () => begun.map(({ account }) => account) };
}

/** Lets all pending promise callbacks run. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test("an account runs two lists at the same time, a third one waits, and another account's list runs", async () => {
  const { begun, start, accounts } = open();
  const lists = [start("a"), start("a"), start("a"), start("b")];
  expect(accounts()).toEqual(["a", "a", "b"]);
  begun[0]?.end();
  await settle();
  expect(accounts()).toEqual(["a", "a", "b", "a"]);
  for (const { end } of begun) end();
  expect((await Promise.all(lists)).map(({ ok }) => ok)).toEqual([true, true, true, true]);
});

test("lists of all accounts use half of the connections, and the list that has waited longest is next", async () => {
  const { begun, start, accounts } = open();
  const lists = ["a", "b", "c", "d", "e", "f", "g"].map(start);
  expect(accounts()).toEqual(["a", "b", "c", "d", "e"]);
  begun[3]?.end();
  await settle();
  expect(accounts().at(-1)).toBe("f");
  for (const { end } of begun) end();
  await settle();
  begun.at(-1)?.end();
  await Promise.all(lists);
  expect(accounts()).toHaveLength(7);
});

test("a list that waits too long is refused with the time of the next try, and does not run later", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const { begun, start } = open();
    const lists = [start("a"), start("a")];
    const third = start("a");
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await third).toMatchObject({ ok: false, code: "rate_limited", retryAfterSeconds: 5 });
    for (const { end } of begun) end();
    await Promise.all(lists);
    expect(begun).toHaveLength(2);
    // The refused list holds no place either.
    const later = [start("a"), start("a")];
    expect(begun).toHaveLength(4);
    for (const { end } of begun) end();
    await Promise.all(later);
  } finally {
    vi.useRealTimers();
  }
});

test("a part of a download waits for as long as its caller says", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const { run, begun, start } = open();
    const lists = [start("a"), start("a")];
    const parts = [run("a", async () => done("part"), 60_000), run("a", async () => done("part"), 60_000)];
    await vi.advanceTimersByTimeAsync(59_000);
    begun[0]?.end();
    expect(await Promise.all(parts)).toEqual([done("part"), done("part")]);
    const blocked = [start("a"), run("a", async () => done("part"), 60_000)];
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await blocked[1]).toMatchObject({ ok: false, code: "rate_limited" });
    for (const { end } of begun) end();
    await Promise.all([...lists, ...blocked]);
  } finally {
    vi.useRealTimers();
  }
});

test("a list that fails makes way for the next one", async () => {
  const { run } = open();
  const fail = () => run("a", () => Promise.reject(new Error("the database does not answer")));
  for (let list = 0; list < 12; list += 1) await expect(fail()).rejects.toThrow("does not answer");
});
