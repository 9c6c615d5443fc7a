import fc from "fast-check";
import { expect, test } from "vitest";
import { findHeight } from "../../../chains/find-height.ts";

const at = new Date(1_000_000);
/** Reads the times of a chain whose blocks up to a height are no later than `at`, and counts the reads. */
function readTimes(last: number, isKnown: (height: number) => boolean = () => true) {
  const read: number[] = [];
  const readTime = async (height: number) => {
    read.push(height);
    return isKnown(height) ? new Date(at.getTime() + (height - last) * 1_000) : undefined;
  };
  return { read, readTime };
}

test("the search finds the last block before a time with few reads, from the newest one backwards", async () => {
  const heights = fc.integer({ min: 0, max: 100_000_000 });
  await fc.assert(
    fc.asyncProperty(heights, heights, async (last, newest) => {
      const { read, readTime } = readTimes(last);
      expect(await findHeight(readTime, { newest, at })).toBe(Math.min(last, newest));
      expect(read.length).toBeLessThan(50);
      if (last < newest)
        expect(Math.min(...read)).toBeGreaterThanOrEqual(Math.min(last, newest - 2 * (newest - last) - 1_024));
    }),
  );
});

test("the search ends at height 0 when the whole chain is later", async () => {
  expect(await findHeight(readTimes(-1).readTime, { newest: 5_000, at })).toBe(0);
});

test("heights without a known time lower the result and never raise it", async () => {
  const isKnown = (height: number) => height % 7 !== 0;
  const found = await findHeight(readTimes(70_000, isKnown).readTime, { newest: 300_000, at });
  expect(found).toBeLessThan(70_000);
  const noneOld = await findHeight(readTimes(70_000, (height) => height > 90_000).readTime, { newest: 300_000, at });
  expect(noneOld).toBe(0);
});
