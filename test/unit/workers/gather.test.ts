import { describe, expect, test, vi } from "vitest";
import { gather } from "../../../workers/gather.ts";

describe("calls made at about the same time", () => {
  test("share one outward call and get each its own answer", async () => {
    const asked: number[][] = [];
    const double = gather(
      async (items: number[]) => {
        asked.push(items);
        return items.map((item) => item * 2);
      },
      { most: 50, waitMs: 5, isOnes: () => false },
    );
    expect(await Promise.all([1, 2, 3].map(double))).toEqual([2, 4, 6]);
    expect(asked).toEqual([[1, 2, 3]]);
  });

  test("never share one with more than the most, and a full one does not wait", async () => {
    const asked: number[][] = [];
    const one = gather(
      async (items: number[]) => {
        asked.push(items);
        return items;
      },
      { most: 2, waitMs: 1_000_000, isOnes: () => false },
    );
    vi.useFakeTimers();
    try {
      const answers = [1, 2, 3, 4].map(one);
      expect(await Promise.all(answers)).toEqual([1, 2, 3, 4]);
      expect(asked).toEqual([
        [1, 2],
        [3, 4],
      ]);
      const late = one(5);
      await vi.advanceTimersByTimeAsync(1_000_000);
      expect(await late).toBe(5);
    } finally {
      vi.useRealTimers();
    }
  });

  test("all hear of a failure, and the next call is made anew", async () => {
    let failing = true;
    const one = gather(
      async (items: number[]) => {
        if (failing) throw new Error("no chain");
        return items;
      },
      { most: 50, waitMs: 1, isOnes: () => false },
    );
    const ends = await Promise.allSettled([one(1), one(2), one(3)]);
    expect(ends.map((end) => end.status)).toEqual(["rejected", "rejected", "rejected"]);
    failing = false;
    expect(await one(4)).toBe(4);
  });
});
