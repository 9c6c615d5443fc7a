import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, fundBuyers, mine, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { type DepsOptions, makeClock } from "../../../support/test-deps.ts";
import { makeTransfersFixture, relayByThirdParty, waitUntilMined } from "../../../support/transfers-fixture.ts";

const sum = ({ calls }: FaultProxy) => Object.values(calls).reduce((all, count) => all + count, 0);

/** A chain behind a proxy that counts the calls. */
async function makeCounted(change: Record<string, unknown> = {}, more: DepsOptions = {}) {
  // `finalized` is six blocks below the head.
  const chain = await startChain({ slotsInAnEpoch: 3 });
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change, ...more });
  const count = async (step: () => Promise<unknown>) => {
    const before = sum(proxy);
    await step();
    return sum(proxy) - before;
  };
  return { chain, proxy, fixture, count };
}

test("a block costs the same calls with five payments in flight and with a hundred", async () => {
  // The clock stands still, so nothing is broadcast again.
  const clock = makeClock();
  clock.stop();
  const { chain, fixture, count } = await makeCounted({ batchGas: 1_000_000 }, { clock });
  const buyers = await fundBuyers(chain, 100);
  await fixture.watch();
  await chain.client.setAutomine(false);
  const costs: number[] = [];
  for (const more of [buyers.slice(0, 5), buyers.slice(5)]) {
    await fixture.signAll(more);
    await fixture.relay();
    // The pool drops the transactions, so blocks pass without them.
    for (let block = 0; block < 3; block += 1) {
      const txs = await chain.client.getTxpoolContent();
      for (const { hash } of Object.values(Object.values(txs.pending)[0] ?? {}))
        await chain.client.dropTransaction({ hash });
      await mine(chain);
      costs.push(await count(() => fixture.watch()));
    }
  }
  const inFlight = (await fixture.transactions()).filter(({ state }) => state === "accepted");
  expect(inFlight.length).toBeGreaterThan(10);
  expect(new Set(costs)).toEqual(new Set([4]));
});

test.each([{ blocks: 1 }, { blocks: 12 }, "finalized"])(
  "the watcher reads three hundred unwatched blocks (finality %j) in ranges and finds each transfer in them once",
  async (finality) => {
    const { chain, fixture, count } = await makeCounted({ finality });
    const signed = await fixture.signAll(await fundBuyers(chain, 4));
    await mine(chain, 20);
    await fixture.watch();
    await fixture.watch();
    await fixture.relay();
    await mine(chain, 120);
    const [late] = await fixture.signAll(await fundBuyers(chain, 1));
    await relayByThirdParty(chain, late?.call ?? "0x");
    await mine(chain, 180);
    const passes = async () => {
      for (let pass = 0; pass < 3; pass += 1) await fixture.watch();
    };
    // Three calls per block, as near the head, would be nine hundred.
    expect(await count(passes)).toBeLessThan(100);
    await mine(chain, 70);
    await passes();
    const ids = [...signed, late].map((one) => one?.id ?? "");
    expect(await fixture.statesOf(ids)).toEqual(ids.map(() => "confirmed"));
    expect(fixture.confirmed).toHaveLength(ids.length);
    expect((await fixture.transactions()).map(({ state }) => state)).toEqual(["final"]);
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(ids.length);
  },
);

test("logs that a range left out are found by the second reading, before anything in the range is confirmed", async () => {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  await relayByThirdParty(chain, one.call);
  await mine(chain, 120);
  let leftOut = 0;
  proxy.alter((method, params, result) => {
    const isRange = method === "eth_getLogs" && "fromBlock" in (params[0] as object);
    if (!isRange || leftOut > 0) return result;
    leftOut = (result as unknown[]).length;
    return [];
  });
  await fixture.watch();
  await mine(chain);
  await fixture.watch();
  expect(leftOut).toBeGreaterThan(0);
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});

test("a reorg of the head after a gap goes back no further than the blocks that were read", async () => {
  const { chain, fixture } = await makeCounted({ finality: { blocks: 3 } });
  await fixture.watch();
  await mine(chain, 130);
  const one = await fixture.sign(await fundBuyer(chain));
  const takeBack = await prepareReorg(chain);
  await fixture.relay();
  await waitUntilMined(chain);
  await mine(chain, 1);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["included"]);
  await takeBack();
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
  expect(fixture.lines.join("")).toContain('"depth":2');
});
