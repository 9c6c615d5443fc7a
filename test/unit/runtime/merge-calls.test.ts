import { expect, test } from "vitest";
import { mergeCalls } from "../../../runtime/merge-calls.ts";

/** A function that doubles numbers, refuses any run with a negative one, and records its runs. */
function setUp(most = 10) {
  const runs: (readonly number[])[] = [];
  const call = mergeCalls(
    async (items: readonly number[]) => {
      runs.push([...items]);
      if (items.some((item) => item < 0)) throw new Error(`refused ${items.filter((item) => item < 0)}`);
      return items.map((item) => 2 * item);
    },
    { most },
  );
  return { call, runs };
}

test("lists of one iteration of the event loop share a run, and each caller gets its own results", async () => {
  const { call, runs } = setUp();
  expect(await Promise.all([call([1, 2]), call([]), call([3])])).toEqual([[2, 4], [], [6]]);
  expect(runs).toEqual([[1, 2, 3]]);
  expect(await call([4])).toEqual([8]);
  expect(runs).toEqual([[1, 2, 3], [4]]);
});

test("a list that is refused fails alone", async () => {
  const { call } = setUp();
  const ends = await Promise.allSettled([call([1]), call([-1]), call([2])]);
  expect(ends).toMatchObject([
    { status: "fulfilled", value: [2] },
    { status: "rejected", reason: { message: "refused -1" } },
    { status: "fulfilled", value: [4] },
  ]);
});

test("a run takes no more items than allowed, and a longer list runs alone", async () => {
  const { call, runs } = setUp(3);
  await Promise.all([call([1, 2]), call([3, 4]), call([5]), call([6, 7, 8, 9])]);
  expect(runs).toEqual([
    [1, 2],
    [3, 4, 5],
    [6, 7, 8, 9],
  ]);
});

test("a call that arrives during a run does not wait for it", async () => {
  const slow = Promise.withResolvers<void>();
  const call = mergeCalls(
    async (items: readonly number[]) => {
      if (items.includes(1)) await slow.promise;
      return items;
    },
    { most: 10 },
  );
  const first = call([1]);
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(await call([2])).toEqual([2]);
  slow.resolve();
  expect(await first).toEqual([1]);
});
