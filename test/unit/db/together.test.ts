import { describe, expect, test } from "vitest";
import { batchCalls } from "../../../db/together.ts";

/** A step that waits to be let on, and writes down what it was asked for. */
function makeStep() {
  const asked: number[][] = [];
  const gates: (() => void)[] = [];
  const step = async (items: number[]) => {
    asked.push(items);
    await new Promise<void>((resolve) => gates.push(resolve));
    return items.map((item) => item * 2);
  };
  const letOn = async () => {
    while (gates.length === 0) await new Promise(setImmediate);
    gates.shift()?.();
  };
  return { asked, step, letOn };
}

describe("what is asked for at about the same time", () => {
  test("shares one run, and each gets its own answer", async () => {
    const { asked, step, letOn } = makeStep();
    const answers = [1, 2, 3].map(batchCalls(step, { most: 50 }));
    await letOn();
    expect(await Promise.all(answers)).toEqual([2, 4, 6]);
    expect(asked).toEqual([[1, 2, 3]]);
  });

  test("waits for the run that is under way, and shares the next one", async () => {
    const { asked, step, letOn } = makeStep();
    const one = batchCalls(step, { most: 50 });
    const first = one(1);
    await new Promise(setImmediate);
    const others = [one(2), one(3)];
    await letOn();
    expect(await first).toBe(2);
    await letOn();
    expect(await Promise.all(others)).toEqual([4, 6]);
    expect(asked).toEqual([[1], [2, 3]]);
  });

  test("waits for company when runs may not follow each other at once, but never the first", async () => {
    const asked: number[][] = [];
    const one = batchCalls(
      async (items: number[]) => {
        asked.push(items);
        return items;
      },
      { most: 50, everyMs: 200 },
    );
    await one(1);
    const second = one(2);
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    expect(asked).toEqual([[1]]);
    await Promise.all([second, one(3)]);
    expect(asked).toEqual([[1], [2, 3]]);
  });

  test("never shares a run with more than the most", async () => {
    const asked: number[][] = [];
    const one = batchCalls(
      async (items: number[]) => {
        asked.push(items);
        return items;
      },
      { most: 2 },
    );
    expect(await Promise.all([1, 2, 3].map(one))).toEqual([1, 2, 3]);
    expect(asked).toEqual([[1, 2], [3]]);
  });
});

describe("a run that fails", () => {
  const failing = (bad: number) =>
    batchCalls(
      async (items: number[]) => {
        if (items.includes(bad)) throw new Error(`not ${bad}`);
        return items;
      },
      { most: 50, isOnes: (cause) => String(cause).includes("not 2") },
    );

  test("because of one of them is made again for each, and fails for that one alone", async () => {
    const ends = await Promise.allSettled([1, 2, 3].map(failing(2)));
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  test("for another reason fails for all of them, and the next one is made anew", async () => {
    const one = failing(3);
    const ends = await Promise.allSettled([1, 2, 3].map(one));
    expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(await one(4)).toBe(4);
  });
});
