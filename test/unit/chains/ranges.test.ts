import fc from "fast-check";
import { expect, test } from "vitest";
import { type Range, readInParts } from "../../../chains/evm/ranges.ts";
import { ChainFault } from "../../../chains/faults.ts";

/** Reads a range from an endpoint that answers no more than so many blocks. */
async function readWith(range: Range, most: number, longest?: number) {
  const asked: Range[] = [];
  const parts: Range[] = [];
  const read = async (part: Range) => {
    asked.push(part);
    if (part.to - part.from + 1 > most) throw new ChainFault("rpc_answer", { detail: "query exceeds the range" });
    return part;
  };
  for await (const { part, found } of readInParts(range, read, longest)) {
    expect(found).toEqual(part);
    parts.push(part);
  }
  return { asked, parts };
}

test("every block of a range is read exactly once and in order, whatever part of it the endpoint allows", async () => {
  const property = fc.asyncProperty(
    fc.nat({ max: 500 }),
    fc.nat({ max: 300 }),
    fc.integer({ min: 1, max: 60 }),
    fc.integer({ min: 1, max: 60 }),
    async (from, length, most, longest) => {
      const { parts, asked } = await readWith({ from, to: from + length }, most, longest);
      const blocks = parts.flatMap((part) => Array.from({ length: part.to - part.from + 1 }, (_, i) => part.from + i));
      expect(blocks).toEqual(Array.from({ length: length + 1 }, (_, i) => from + i));
      // A refusal halves what is asked for, and is not forgotten in the next part.
      expect(asked.length - parts.length).toBeLessThanOrEqual(Math.ceil(Math.log2(longest)));
    },
  );
  await fc.assert(property, { numRuns: 300 });
});

test("a range is read in one part where the endpoint allows it, and an empty one not at all", async () => {
  expect((await readWith({ from: 7, to: 9 }, 50)).parts).toEqual([{ from: 7, to: 9 }]);
  expect((await readWith({ from: 9, to: 8 }, 50)).asked).toEqual([]);
});

test("a single block that is refused, and any other error, is thrown", async () => {
  await expect(readWith({ from: 1, to: 8 }, 0)).rejects.toMatchObject({ code: "rpc_answer" });
  const silent = readInParts({ from: 1, to: 8 }, () => Promise.reject(new ChainFault("rpc_unreachable")));
  await expect(silent.next()).rejects.toMatchObject({ code: "rpc_unreachable" });
});
