import { describe, expect, test } from "vitest";
import { batchCalls, batchStatements } from "../../../db/batch-calls.ts";

/** Creates a batch function that records its items and waits until the test releases it. */
function makeStep() {
  const batches: number[][] = [];
  const gates: (() => void)[] = [];
  const step = async (items: number[]) => {
    batches.push(items);
    await new Promise<void>((resolve) => gates.push(resolve));
    return items.map((item) => item * 2);
  };
  const release = async () => {
    while (gates.length === 0) await new Promise(setImmediate);
    gates.shift()?.();
  };
  return { batches, step, release };
}

describe("calls made at about the same time", () => {
  test("calls made at about the same time share one batch, and each call gets its own result", async () => {
    const { batches, step, release } = makeStep();
    const answers = [1, 2, 3].map(batchCalls(step, { most: 50 }));
    await release();
    expect(await Promise.all(answers)).toEqual([2, 4, 6]);
    expect(batches).toEqual([[1, 2, 3]]);
  });

  test("calls made during a batch wait for it and share the next one", async () => {
    const { batches, step, release } = makeStep();
    const one = batchCalls(step, { most: 50 });
    const first = one(1);
    await new Promise(setImmediate);
    const others = [one(2), one(3)];
    await release();
    expect(await first).toBe(2);
    await release();
    expect(await Promise.all(others)).toEqual([4, 6]);
    expect(batches).toEqual([[1], [2, 3]]);
  });

  test("a batch never exceeds the maximum size", async () => {
    const batches: number[][] = [];
    const one = batchCalls(
      async (items: number[]) => {
        batches.push(items);
        return items;
      },
      { most: 2 },
    );
    expect(await Promise.all([1, 2, 3].map(one))).toEqual([1, 2, 3]);
    expect(batches).toEqual([[1, 2], [3]]);
  });
});

test("a list that is longer than a batch runs alone, and shorter ones share a batch up to its size", async () => {
  const batches: number[][] = [];
  const insert = batchStatements(
    async (_db: { isTransaction: boolean }, lists: readonly number[]) => {
      batches.push([...lists]);
      return lists;
    },
    { sizeOf: (length) => length },
  );
  const db = { isTransaction: false };
  await Promise.all([150, 50, 1, 500, 2, 3].map((length) => insert(db, length)));
  expect(batches).toEqual([[150, 50], [1], [500], [2, 3]]);
});

describe("a batch that fails", () => {
  const failing = (bad: number) =>
    batchCalls(
      async (items: number[]) => {
        if (items.includes(bad)) throw new Error(`not ${bad}`);
        return items;
      },
      { most: 50, isOnes: (cause) => String(cause).includes("not 2") },
    );

  test("because of one item is retried item by item and fails for that item alone", async () => {
    const ends = await Promise.allSettled([1, 2, 3].map(failing(2)));
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  test("for another reason fails for every item, and the next call starts a new batch", async () => {
    const one = failing(3);
    const ends = await Promise.allSettled([1, 2, 3].map(one));
    expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(await one(4)).toBe(4);
  });

  test.each(["22003", "23505", "40001", "40P01"])("with %s is retried statement by statement", async (code) => {
    const statement = batchStatements(async (_db: { isTransaction: boolean }, items: readonly number[]) => {
      if (items.length > 1) throw Object.assign(new Error("refused"), { code });
      return items;
    });
    const db = { isTransaction: false };
    expect(await Promise.all([1, 2, 3].map((item) => statement(db, item)))).toEqual([1, 2, 3]);
  });
});
