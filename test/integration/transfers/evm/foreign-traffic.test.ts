import { expect, test } from "vitest";
import { fundBuyer, mine, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeForeignTraffic } from "../../../support/foreign-traffic.ts";
import { type ProviderCounts, startRealisticProvider } from "../../../support/realistic-provider.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../../support/transfers-fixture.ts";

/** Transfers of strangers in each busy block; each makes a log of the token that our payments use. */
const FOREIGN = 500;

/** A chain with traffic of strangers, behind a provider that counts what it answers. */
async function startBusyChain() {
  const chain = await startChain();
  const makeTraffic = await makeForeignTraffic(chain);
  const provider = await startRealisticProvider({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [provider.url], change: { finality: { blocks: 3 } } });
  await fixture.watch();
  return { chain, provider, fixture, makeTraffic };
}

const sum = (calls: ProviderCounts["calls"]) => Object.values(calls).reduce((all, count) => all + count, 0);

test("a block with hundreds of strangers' transfers costs the calls and the bytes of an empty one", async () => {
  const { chain, provider, fixture, makeTraffic } = await startBusyChain();
  await chain.client.setAutomine(false);
  const costs: { calls: number; bytes: number }[] = [];
  for (const foreign of [0, FOREIGN, 0, FOREIGN]) {
    if (foreign > 0) await makeTraffic(foreign);
    await mine(chain);
    const { hash } = await chain.client.getBlock();
    expect(await chain.client.getLogs({ blockHash: hash })).toHaveLength(foreign);
    const before = { calls: sum(provider.counts.calls), bytes: provider.counts.bytes };
    await fixture.watch();
    costs.push({ calls: sum(provider.counts.calls) - before.calls, bytes: provider.counts.bytes - before.bytes });
  }
  const [quiet, busy] = [costs[2], costs[3]];
  expect(busy?.calls).toBe(quiet?.calls);
  // The header names the one transaction that made the transfers, and its other numbers have more digits.
  expect(Math.abs((busy?.bytes ?? 0) - (quiet?.bytes ?? 0))).toBeLessThan(200);
  expect(await fixture.observations()).toEqual([]);
});

test("payments, deposits and payouts among strangers' transfers are found, with one receipt for each transaction of others", async () => {
  const { chain, provider, fixture, makeTraffic } = await startBusyChain();
  const [relayed, own] = [await fixture.sign(await fundBuyer(chain)), await fixture.sign(await fundBuyer(chain))];
  await makeTraffic(FOREIGN);
  await relayByThirdParty(chain, relayed.call);
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 7n);
  await makeTraffic(FOREIGN);
  await fixture.relay();
  await makeTraffic(FOREIGN);
  const before = provider.counts.calls["eth_getTransactionReceipt"] ?? 0;
  await fixture.watch();
  expect((provider.counts.calls["eth_getTransactionReceipt"] ?? 0) - before).toBe(3);
  await mine(chain, 3);
  await fixture.watch();
  expect(await fixture.statesOf([relayed.id, own.id])).toEqual(["confirmed", "confirmed"]);
  expect(fixture.unmatched.map(({ amount }) => amount)).toEqual([7n]);
  expect(await fixture.observations()).toHaveLength(3);
});
