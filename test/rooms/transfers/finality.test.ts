import { expect, test } from "vitest";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyer, mine, startChain } from "../../support/chain.ts";

/** Anvil's `safe` is one epoch below the newest block, and its `finalized` two. */
const EPOCH = 3;

test.each([
  ["a number of blocks", { blocks: 4 }, 3],
  ["safe", "safe", EPOCH],
  ["finalized", "finalized", 2 * EPOCH],
])(
  'a transfer is confirmed by the policy "%s" in the first block that satisfies it, and not earlier',
  async (_name, finality, after) => {
    const chain = await startChain({ slotsInAnEpoch: EPOCH });
    await mine(chain, 20);
    const carrier = await makeCarrier(chain, { change: { finality } });
    const one = await carrier.sign(await fundBuyer(chain));
    await carrier.relay();
    await carrier.watch();
    for (let blocks = 0; blocks < after; blocks += 1) {
      expect([blocks, await carrier.statesOf([one.id])]).toEqual([blocks, ["included"]]);
      await mine(chain);
      await carrier.watch();
    }
    expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
    expect(carrier.confirmed).toHaveLength(1);
    expect((await carrier.transactions()).map((row) => row.state)).toEqual(["final"]);
  },
);

test("a height that was not read is not final, although an endpoint that is ahead reports it", async () => {
  const chain = await startChain({ slotsInAnEpoch: 1 });
  const proxy = await startAlteringProxy({ target: chain.url });
  const carrier = await makeCarrier(chain, { rpcUrls: [proxy.url], change: { finality: "finalized" } });
  await carrier.watch();
  const head = await chain.client.getBlockNumber();
  await mine(chain, 20);
  // The endpoint that reports the head lags behind the one that reports the final block.
  proxy.alter((method, _params, result) => (method === "eth_blockNumber" ? `0x${head.toString(16)}` : result));
  await carrier.watch();
  const cursor = await carrier.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
  expect(cursor).toMatchObject({ number: Number(head), final_number: Number(head) });
});
