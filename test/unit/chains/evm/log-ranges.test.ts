import fc from "fast-check";
import { HttpRequestError, RpcRequestError, TimeoutError } from "viem";
import { expect, test } from "vitest";
import { ChainError } from "../../../../chains/errors.ts";
import type { Rpc } from "../../../../chains/evm/evm-rpc.ts";
import { type BlockRange, readRangeInParts } from "../../../../chains/evm/log-ranges.ts";

/** An endpoint that no test asks: what it has allowed is stored by it. */
const newEndpoint = (): Rpc => (() => Promise.reject(new Error("not asked"))) as unknown as Rpc;

const refusal = (message: string, code = -32_000) =>
  new ChainError("rpc_answer", { cause: new RpcRequestError({ body: {}, error: { code, message }, url: "http://x" }) });

const lengthOf = ({ from, to }: BlockRange) => to - from + 1;

/** Reads a range from an endpoint that answers for at most `limit` blocks. */
async function readWith(
  range: BlockRange,
  {
    limit,
    longest = 50,
    rpc = newEndpoint(),
    error = refusal("block range is too wide"),
  }: {
    limit: number;
    longest?: number;
    rpc?: Rpc;
    error?: Error;
  },
) {
  const asked: number[] = [];
  const parts: BlockRange[] = [];
  const read = async (part: BlockRange) => {
    asked.push(lengthOf(part));
    if (lengthOf(part) > limit) throw error;
    return part;
  };
  for await (const { part, found } of readRangeInParts(rpc, range, { longest, read })) {
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
      const { parts, asked } = await readWith({ from, to: from + length }, { limit, longest });
      const blocks = parts.flatMap((part) => Array.from({ length: lengthOf(part) }, (_, i) => part.from + i));
      expect(blocks).toEqual(Array.from({ length: length + 1 }, (_, i) => from + i));
      expect(Math.max(...asked)).toBeLessThanOrEqual(longest);
    },
  );
  await fc.assert(property, { numRuns: 300 });
});

test("a range is read in one part if the endpoint allows it, and an empty range sends no request", async () => {
  expect((await readWith({ from: 7, to: 9 }, { limit: 50 })).parts).toEqual([{ from: 7, to: 9 }]);
  expect((await readWith({ from: 9, to: 8 }, { limit: 50 })).asked).toEqual([]);
});

test("a limit that the refusal states is used at once, and kept for the next ranges", async () => {
  const rpc = newEndpoint();
  const error = refusal("eth_getLogs is limited to a 500 range", -32_614);
  const first = await readWith({ from: 1, to: 1_500 }, { limit: 500, longest: 10_000, rpc, error });
  expect(first.asked).toEqual([1_500, 500, 500, 500]);
  const second = await readWith({ from: 1_501, to: 3_000 }, { limit: 500, longest: 10_000, rpc, error });
  expect(second.asked).toEqual([500, 500, 500]);
});

test("a limit that is not stated is found by halving, and few calls are refused afterwards", async () => {
  const { asked } = await readWith({ from: 1, to: 100_000 }, { limit: 700, longest: 10_000 });
  expect(asked.slice(0, 6)).toEqual([10_000, 5_000, 2_500, 1_250, 625, 688]);
  expect(asked.filter((blocks) => blocks > 700).length / asked.length).toBeLessThan(0.1);
});

test("the parts grow again to the full length once the endpoint allows more", async () => {
  const rpc = newEndpoint();
  await readWith({ from: 1, to: 100 }, { limit: 10, longest: 400, rpc });
  const { asked } = await readWith({ from: 101, to: 40_000 }, { limit: 400, longest: 400, rpc });
  expect(asked[0]).toBeLessThanOrEqual(25);
  expect(asked.at(-2)).toBe(400);
});

test("an error with an unknown text halves the range, because it may refuse the size", async () => {
  const { parts } = await readWith({ from: 1, to: 40 }, { limit: 7, error: refusal("something new") });
  expect(parts.every((part) => lengthOf(part) <= 7)).toBe(true);
});

test.each([
  ["a rate limit", refusal("Too Many Requests", 429)],
  ["a node that is behind", refusal("block range extends beyond current head block", -32_602)],
  ["pruned history", refusal("pruned history unavailable", 4_444)],
  ["an endpoint that does not answer", new ChainError("rpc_unreachable")],
  ["a bug", new TypeError("undefined is not a function")],
])("the range is not halved for %s: the error is thrown at once", async (_, error) => {
  const rpc = newEndpoint();
  await expect(readWith({ from: 1, to: 40 }, { limit: 0, rpc, error })).rejects.toBe(error);
  expect((await readWith({ from: 1, to: 40 }, { limit: 40, rpc })).asked).toEqual([40]);
});

test("a single block that is refused does not repeat for ever: its refusal is thrown", async () => {
  const error = refusal("query returned more than 10000 results", -32_005);
  await expect(readWith({ from: 1, to: 8 }, { limit: 0, error })).rejects.toBe(error);
});

test.each([
  ["times out", new TimeoutError({ body: {}, url: "http://x" })],
  ["is behind a proxy that times out", new HttpRequestError({ status: 504, url: "http://x" })],
])(
  "a part on which the endpoint %s is thrown, so that another endpoint is asked, and the next part is shorter",
  async (_, cause) => {
    const rpc = newEndpoint();
    const error = new ChainError("rpc_unreachable", { cause });
    await expect(readWith({ from: 1, to: 40 }, { limit: 0, rpc, error })).rejects.toBe(error);
    expect((await readWith({ from: 1, to: 40 }, { limit: 40, rpc })).asked[0]).toBe(20);
  },
);
