import fc from "fast-check";
import { expect, test } from "vitest";
import { ChainError } from "../../../../chains/errors.ts";
import { type BlockRange, readRangeInParts } from "../../../../chains/evm/block-ranges.ts";

/** Reads a range from an endpoint that answers for at most `limit` blocks. */
async function readWith(range: BlockRange, limit: number, longest?: number) {
  const asked: BlockRange[] = [];
  const parts: BlockRange[] = [];
  const read = async (part: BlockRange) => {
    asked.push(part);
    if (part.to - part.from + 1 > limit) throw new ChainError("rpc_answer", { detail: "query exceeds the range" });
    return part;
  };
  for await (const { part, found } of readRangeInParts(range, read, longest)) {
    expect(found).toEqual(part);
    parts.push(part);
  }
  return { asked, parts };
}

test("every block of a range is read exactly once and in order, whatever length the endpoint allows", async () => {
  const property = fc.asyncProperty(
    fc.nat({ max: 500 }),
    fc.nat({ max: 300 }),
    fc.integer({ min: 1, max: 60 }),
    fc.integer({ min: 1, max: 60 }),
    async (from, length, limit, longest) => {
      const { parts, asked } = await readWith({ from, to: from + length }, limit, longest);
      const blocks = parts.flatMap((part) => Array.from({ length: part.to - part.from + 1 }, (_, i) => part.from + i));
      expect(blocks).toEqual(Array.from({ length: length + 1 }, (_, i) => from + i));
      // A refusal halves the length of this part and of the later ones.
      expect(asked.length - parts.length).toBeLessThanOrEqual(Math.ceil(Math.log2(longest)));
    },
  );
  await fc.assert(property, { numRuns: 300 });
});

test("a range is read in one part if the endpoint allows it, and an empty range sends no request", async () => {
  expect((await readWith({ from: 7, to: 9 }, 50)).parts).toEqual([{ from: 7, to: 9 }]);
  expect((await readWith({ from: 9, to: 8 }, 50)).asked).toEqual([]);
});

test("the refusal of a single block and any other error are thrown", async () => {
  await expect(readWith({ from: 1, to: 8 }, 0)).rejects.toMatchObject({ code: "rpc_answer" });
  const silent = readRangeInParts({ from: 1, to: 8 }, () => Promise.reject(new ChainError("rpc_unreachable")));
  await expect(silent.next()).rejects.toMatchObject({ code: "rpc_unreachable" });
});
