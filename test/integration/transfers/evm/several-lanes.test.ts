import { sql } from "kysely";
import { expect, test } from "vitest";
import { fundBuyer, fundBuyers, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";
import { waitFor } from "../../../support/wait-for.ts";

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

/** A fixture with three lanes, two of them for plain keys, whose first transaction stays without its answer until `answer` is called. */
async function withSlowSend() {
  const chain = await startChain({ lanes: 3 });
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change: { batchGas: 400_000 } });
  const [sent, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  proxy.onAnswer((method) => {
    if (method !== "eth_sendRawTransaction") return undefined;
    sent.resolve();
    return answered.promise;
  });
  const first = await fixture.sign(await fundBuyer(chain));
  const sending = fixture.relay();
  await sent.promise;
  const lanesUsed = async () => new Set((await fixture.transactions()).map((row) => row.lane_id)).size;
  const signMore = async (count: number) => {
    const more = await fixture.signAll(await fundBuyers(chain, count));
    // As if the send had begun now or a little later, although signing and what follows take time.
    await sql`update lane set lease_until = clock_timestamp() + interval '30 s' where lease_until is not null`.execute(
      fixture.deps.db,
    );
    return [first, ...more].map(({ id }) => id);
  };
  return { fixture, sending, signMore, answer: answered.resolve, lanesUsed };
}

test("transfers that fit into the next transaction of a lane at work wait for it", async () => {
  const { fixture, sending, signMore, answer, lanesUsed } = await withSlowSend();
  const ids = await signMore(2);
  expect(await fixture.relay()).toBe("idle");
  expect(await fixture.transactions()).toHaveLength(1);
  answer();
  await sending;
  await fixture.watch();
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "confirmed", "confirmed"]);
  expect(await lanesUsed()).toBe(1);
  expect(await fixture.transactions()).toHaveLength(2);
});

test("one worker sends through a second lane when more wait than the next transaction of the first can carry", async () => {
  const { fixture, sending, signMore, answer, lanesUsed } = await withSlowSend();
  const ids = await signMore(5);
  const second = fixture.relay();
  await waitFor(async () => (await lanesUsed()) === 2, { within: 30_000 });
  answer();
  await Promise.all([sending, second]);
  await fixture.watch();
  expect(new Set(await fixture.statesOf(ids))).toEqual(new Set(["confirmed"]));
});
