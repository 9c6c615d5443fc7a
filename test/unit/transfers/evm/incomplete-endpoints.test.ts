import { expect, test } from "vitest";
import { ChainError, parseAnswer } from "../../../../chains/errors.ts";
import type { Rpc } from "../../../../chains/evm/evm-rpc.ts";
import { readUnlessIncomplete } from "../../../../transfers/evm/incomplete-endpoints.ts";

/** Returns a function that reads blocks from one of two endpoints, where each reading throws the same error at the next second. */
function openReader(thrown: () => unknown) {
  const rpc = (() => Promise.reject(new Error("unused"))) as unknown as Rpc;
  const chain = { network: { blockMs: 2_000 }, endpoints: [{}, {}] } as never;
  const cursor = { blockId: "0x01", number: 1, finalNumber: 1 } as never;
  let seconds = 0;
  return () =>
    readUnlessIncomplete({ now: () => new Date(seconds * 1_000) }, chain, { rpc, cursor }, async () => {
      seconds += 60;
      throw thrown();
    });
}

test("a bug in the reading of blocks is never taken for an endpoint that shows too little", async () => {
  const bug = new TypeError("Cannot read properties of undefined");
  const read = openReader(() => bug);
  for (let pass = 0; pass < 3; pass += 1) await expect(read()).rejects.toBe(bug);
});

test("an endpoint whose answer cannot be parsed is passed over after a while", async () => {
  const parse = (answer: { logs?: [] }) => parseAnswer(() => answer.logs?.length.toFixed() ?? BigInt("zz"));
  const read = openReader(() => {
    try {
      return parse({});
    } catch (error) {
      return error;
    }
  });
  await expect(read()).rejects.toMatchObject({ code: "rpc_answer", message: expect.stringContaining("zz") });
  await expect(read()).rejects.toMatchObject({ code: "logs_refused" });
});

test("an error of the chain that is thrown while an answer is parsed keeps its code", () => {
  const behind = new ChainError("rpc_behind");
  const parse = () =>
    parseAnswer(() => {
      throw behind;
    });
  expect(parse).toThrow(behind);
});
