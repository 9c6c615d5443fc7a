import { expect, test } from "vitest";
import { readAgreedHeight, readFinalFromEach } from "../../../../chains/solana/cluster-state.ts";
import { answerEach, openCluster } from "./test-endpoints.ts";

/** An endpoint with these confirmed and final block heights. */
const heights = (confirmed: number, finalized: number) => ({
  answer: answerEach(({ params: [options] }) => {
    const height = (options as { commitment: string } | undefined)?.commitment === "finalized" ? finalized : confirmed;
    return { result: { absoluteSlot: height, blockHeight: height } };
  }),
});

test("the height that two endpoints have reached is a confirmed one, so that a final height may stand still", async () => {
  const { chain } = await openCluster(heights(500, 10), heights(502, 470), heights(300, 270));
  expect(await readAgreedHeight(chain)).toBe(500);
});

test("final states within a time are those of the endpoints that have answered by then", async () => {
  const hanging = { answer: (body: object) => ("method" in body && body.method === "getEpochInfo" ? undefined : {}) };
  const { chain } = await openCluster(heights(500, 470), hanging, heights(502, 471));
  await chain.rpc.queryAvailable("getSlot", (_connection, call) => call("getSlot", []));
  const began = Date.now();
  const states = await readFinalFromEach(chain, 1_000);
  expect(Date.now() - began).toBeLessThan(4_000);
  expect(states.map(({ slot }) => slot).toSorted()).toEqual([470, 471]);
});
