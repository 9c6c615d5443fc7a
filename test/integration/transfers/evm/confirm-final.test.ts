import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

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
    const fixture = await makeTransfersFixture(chain, { change: { finality } });
    const one = await fixture.sign(await fundBuyer(chain));
    await fixture.relay();
    await fixture.watch();
    for (let blocks = 0; blocks < after; blocks += 1) {
      expect([blocks, await fixture.statesOf([one.id])]).toEqual([blocks, ["included"]]);
      await mine(chain);
      await fixture.watch();
    }
    expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
    expect(fixture.confirmed).toHaveLength(1);
    expect((await fixture.transactions()).map((row) => row.state)).toEqual(["final"]);
  },
);

test("a height that was not read is not final, although an endpoint that is ahead reports it", async () => {
  const chain = await startChain({ slotsInAnEpoch: 1 });
  const proxy = await startAlteringProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change: { finality: "finalized" } });
  await fixture.watch();
  const head = await chain.client.getBlockNumber();
  await mine(chain, 20);
  // The endpoint that reports the head lags behind the one that reports the final block.
  proxy.alter((method, _params, result) => (method === "eth_blockNumber" ? `0x${head.toString(16)}` : result));
  await fixture.watch();
  const cursor = await fixture.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
  expect(cursor).toMatchObject({ number: Number(head), final_number: Number(head) });
});
