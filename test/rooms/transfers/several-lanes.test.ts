import { expect, test } from "vitest";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyer, fundBuyers, startChain, transfersTo } from "../../support/chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";

test("a lane whose broadcast is unanswered takes no new work, and another lane relays the next transfers", async () => {
  const chain = await startChain({ lanes: 3 });
  const proxy = await startFaultProxy({ target: chain.url });
  const carrier = await makeCarrier(chain, { rpcUrls: [proxy.url] });
  const stuck = await carrier.sign(await fundBuyer(chain));
  const refuse = { code: -32_000, message: "txpool is full" };
  proxy.fail(({ method }) => (method === "eth_sendRawTransaction" ? refuse : undefined));
  await carrier.relay();
  proxy.fail(undefined);
  const next = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([stuck.id, next.id])).toEqual(["carried", "confirmed"]);
  const lanes = (await carrier.transactions()).map((row) => row.lane_id);
  expect(new Set(lanes).size).toBe(2);

  carrier.clock.advance(10_000);
  await carrier.watch();
  await carrier.watch();
  expect(await carrier.statesOf([stuck.id])).toEqual(["confirmed"]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(2);
});

test("a lane uses no more nonces than its window while none is in a block, and goes on when one is", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain, { change: { laneWindow: 3, batchGas: 200_000 } });
  const ids = (await carrier.signAll(await fundBuyers(chain, 8))).map(({ id }) => id);
  await chain.client.setAutomine(false);
  await carrier.relay();
  await carrier.relay();
  expect(await carrier.transactions()).toHaveLength(3);
  for (let pass = 0; pass < 3; pass += 1) {
    await chain.client.mine({ blocks: 1 });
    await carrier.watch();
    await carrier.relay();
  }
  await chain.client.mine({ blocks: 1 });
  await carrier.watch();
  expect(new Set(await carrier.statesOf(ids))).toEqual(new Set(["confirmed"]));
  expect((await carrier.transactions()).map((row) => row.nonce)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

test("several owners of several lanes relay every transfer once", async () => {
  const chain = await startChain({ lanes: 4 });
  const change = { batchGas: 400_000 };
  const one = await makeCarrier(chain, { change });
  const two = await makeCarrier(chain, { change, databaseUrl: one.databaseUrl });
  const ids = (await one.signAll(await fundBuyers(chain, 30))).map(({ id }) => id);
  const relayAll = async (owner: typeof one) => {
    while ((await owner.relay()) === "more");
  };
  await Promise.all([one, two, one, two, one].map(relayAll));
  // A transfer that one lane claimed and another one sent meanwhile shows as nothing left.
  await one.relay();
  await one.watch();
  expect(new Set(await one.statesOf(ids))).toEqual(new Set(["confirmed"]));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(30);
  const transactions = await one.transactions();
  expect(transactions.map((row) => row.reverted)).toEqual(transactions.map(() => false));
});
