import { numberToHex } from "viem";
import { expect, test } from "vitest";
import { type Alter, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { makeTransfersFixture, waitUntilMined } from "../../../support/transfers-fixture.ts";

/** Answers as a node does that follows the chain no further than this height. */
function stopAt(height: number): Alter {
  return (method, [which], result) => {
    if (method === "eth_blockNumber") return numberToHex(height);
    if (method === "eth_getTransactionReceipt") return null;
    if (method !== "eth_getBlockByNumber") return result;
    const { number } = (result ?? { number: "0x0" }) as { number: string };
    if (Number(number) <= height) return result;
    return which === "latest" ? { ...(result as object), number: numberToHex(height) } : null;
  };
}

/** A transfer on a chain with two endpoints. */
async function withTwoEndpoints() {
  const chain = await startChain();
  const first = await startAlteringProxy({ target: chain.url });
  const rpcUrls = [first.url, chain.url];
  const change = { finality: { blocks: 2 }, maxHeadAgeMs: 60_000 };
  const fixture = await makeTransfersFixture(chain, { rpcUrls, change });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  const behind = async () => (await fixture.deps.metrics.endpointBehind.get()).values.map(({ value }) => value);
  return { chain, first, fixture, one, behind };
}

test("a first endpoint that stays at an old block does not stop the chain while the second one follows it", async () => {
  const { chain, first, fixture, one, behind } = await withTwoEndpoints();
  first.alter(stopAt(Number(await chain.client.getBlockNumber())));
  await fixture.relay();
  await waitUntilMined(chain);
  await mine(chain, 40);
  fixture.clock.advance(120_000);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
  expect(await behind()).toEqual([41, 0]);
  for (let pass = 0; pass < 3; pass += 1) {
    fixture.clock.advance(30_000);
    await mine(chain);
    await fixture.watch();
  }
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  first.alter(undefined);
  fixture.clock.advance(120_000);
  await fixture.watch();
  expect(await behind()).toEqual([0, 0]);
});
