import { expect, test } from "vitest";
import { fundBuyer, fundBuyers, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

test("a lane whose broadcast is unanswered takes no new work, and another lane relays the next transfers", async () => {
  const chain = await startChain({ lanes: 3 });
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
  const stuck = await fixture.sign(await fundBuyer(chain));
  const refuse = { code: -32_000, message: "txpool is full" };
  proxy.fail(({ method }) => (method === "eth_sendRawTransaction" ? refuse : undefined));
  await fixture.relay();
  proxy.fail(undefined);
  const next = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([stuck.id, next.id])).toEqual(["assigned", "confirmed"]);
  const lanes = (await fixture.transactions()).map((row) => row.lane_id);
  expect(new Set(lanes).size).toBe(2);

  fixture.clock.advance(10_000);
  await fixture.watch();
  await fixture.watch();
  expect(await fixture.statesOf([stuck.id])).toEqual(["confirmed"]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(2);
});

test("a lane uses no more nonces than its window while none is in a block, and goes on when one is", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: { laneWindow: 3, batchGas: 200_000 } });
  const ids = (await fixture.signAll(await fundBuyers(chain, 8))).map(({ id }) => id);
  await chain.client.setAutomine(false);
  await fixture.relay();
  await fixture.relay();
  expect(await fixture.transactions()).toHaveLength(3);
  for (let pass = 0; pass < 3; pass += 1) {
    await chain.client.mine({ blocks: 1 });
    await fixture.watch();
    await fixture.relay();
  }
  await chain.client.mine({ blocks: 1 });
  await fixture.watch();
  expect(new Set(await fixture.statesOf(ids))).toEqual(new Set(["confirmed"]));
  expect((await fixture.transactions()).map((row) => row.nonce)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

test("several owners of several lanes relay every transfer once", async () => {
  const chain = await startChain({ lanes: 4 });
  const change = { batchGas: 400_000 };
  const one = await makeTransfersFixture(chain, { change });
  const two = await makeTransfersFixture(chain, { change, databaseUrl: one.databaseUrl });
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
