import type { Hex } from "viem";
import { expect, test } from "vitest";
import { fundBuyer, mine, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const MINUTE_MS = 60_000;
const change = { blockMs: 2_000, maxHeadAgeMs: MINUTE_MS };

/** Relays a transfer on a chain that makes no block by itself. The clock stands still. */
async function relayWithoutBlocks() {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change });
  fixture.clock.stop();
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  await chain.client.setAutomine(false);
  await fixture.relay();
  return { chain, fixture, one };
}

test("a chain that makes no block for an hour has no fee raised, and its lane pays the price of the signing", async () => {
  const { chain, fixture, one } = await relayWithoutBlocks();
  for (let minute = 0; minute < 60; minute += 10) {
    fixture.clock.advance(10 * MINUTE_MS);
    await fixture.watch();
  }
  expect((await fixture.transactions()).map(({ replacement, state }) => [replacement, state])).toEqual([
    [0, "accepted"],
  ]);
  await mine(chain);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("a transaction that is in none of twenty blocks has its fee raised once they are read", async () => {
  const { chain, fixture, one } = await relayWithoutBlocks();
  const [first] = await fixture.transactions();
  const mineWithoutIt = async (blocks: number) => {
    await chain.client.dropTransaction({ hash: first?.hash as Hex });
    await mine(chain, blocks);
    fixture.clock.advance(MINUTE_MS);
    // The blocks are read in one pass, and the next one knows them.
    await fixture.watch();
    await fixture.watch();
  };
  await mineWithoutIt(19);
  expect(await fixture.transactions()).toHaveLength(1);
  await mineWithoutIt(1);
  expect((await fixture.transactions()).map(({ replacement }) => replacement)).toEqual([0, 1]);
  await mine(chain);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});

test("a chain that makes no block has no fee raised because its endpoints refuse the price", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change });
  fixture.clock.stop();
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  const full = { code: -32_000, message: "txpool is full" };
  proxy.fail(({ method }) => (method === "eth_sendRawTransaction" ? full : undefined));
  await fixture.relay();
  for (let minute = 0; minute < 5; minute += 1) {
    fixture.clock.advance(MINUTE_MS);
    await fixture.watch();
  }
  expect(await fixture.transactions()).toHaveLength(1);
  await mine(chain, 3);
  fixture.clock.advance(MINUTE_MS);
  await fixture.watch();
  await fixture.watch();
  expect((await fixture.transactions()).length).toBeGreaterThan(1);
  proxy.fail(undefined);
  fixture.clock.advance(MINUTE_MS);
  await fixture.watch();
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});
