import { expect, test } from "vitest";
import { getEvmChain } from "../../../../chains/open-chains.ts";
import { fundBuyer, fundBuyers, mine, startChain, type TestChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

/** Returns the lanes of plain keys in the order in which unused lanes are taken: by name. */
const lanesInOrder = (chain: TestChain) =>
  chain.keys.lanes
    .slice(0, -1)
    .map(({ address }) => address)
    .toSorted((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));

test("a lane without gas leaves the work to another lane, and works again once it has gas", async () => {
  const chain = await startChain({ lanes: 3 });
  const fixture = await makeTransfersFixture(chain);
  const [broke = "0x", rich = "0x"] = lanesInOrder(chain);
  await chain.client.setBalance({ address: broke, value: 0n });
  const first = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  expect(await fixture.transactions()).toMatchObject([
    { lane_id: `${chain.id}:${rich.toLowerCase()}`, state: "accepted" },
  ]);

  const ids: string[] = [];
  for (const buyer of await fundBuyers(chain, 3)) {
    ids.push((await fixture.sign(buyer)).id);
    await fixture.relay();
    await fixture.watch();
  }
  expect(await fixture.statesOf([first.id, ...ids])).toEqual(["confirmed", "confirmed", "confirmed", "confirmed"]);
  const sent = (await fixture.transactions()).filter((row) => row.state === "final");
  expect(new Set(sent.map((row) => row.lane_id))).toEqual(new Set([`${chain.id}:${rich.toLowerCase()}`]));

  await chain.client.setBalance({ address: broke, value: 10n ** 18n });
  await chain.client.setBalance({ address: rich, value: 0n });
  const last = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([last.id])).toEqual(["confirmed"]);
  const lanes = (await fixture.transactions()).map((row) => row.lane_id);
  expect(lanes.filter((lane) => lane === `${chain.id}:${broke.toLowerCase()}`)).toHaveLength(1);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(5);
});

test("a lane without gas lets go of its transfers although a wake is requested each time, and another lane sends them", async () => {
  const chain = await startChain({ lanes: 3 });
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
  const [broke = "0x", rich = "0x"] = lanesInOrder(chain);
  await chain.client.setBalance({ address: broke, value: 0n });
  const ids = (await fixture.signAll(await fundBuyers(chain, 3))).map(({ id }) => id);
  const wake = () => fixture.db.updateTable("lane").set({ wake_requested: true }).execute();
  proxy.hold(({ method }) => (method === "eth_getBalance" ? wake() : undefined));
  await fixture.relay();
  expect(proxy.calls["eth_getBalance"]).toBe(2);
  expect(await fixture.statesOf(ids)).toEqual(["assigned", "assigned", "assigned"]);
  expect(await fixture.transactions()).toMatchObject([{ lane_id: `${chain.id}:${rich.toLowerCase()}` }]);
});

test("a transfer waits for the first lane with gas while no lane has any, and holds no nonce", async () => {
  const chain = await startChain({ lanes: 3 });
  const fixture = await makeTransfersFixture(chain);
  for (const address of lanesInOrder(chain)) await chain.client.setBalance({ address, value: 0n });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  expect(await fixture.transactions()).toEqual([]);
  expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
  await chain.client.setBalance({ address: lanesInOrder(chain)[1] ?? "0x", value: 10n ** 18n });
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});

test("the only lane of a chain sends as many of the waiting transfers as it can pay for, and the others once it has gas", async () => {
  const chain = await startChain({ lanes: 1 });
  const fixture = await makeTransfersFixture(chain);
  const [address = "0x"] = chain.keys.lanes.map((lane) => lane.address);
  const ids = (await fixture.signAll(await fundBuyers(chain, 6))).map(({ id }) => id);
  await fixture.watch();
  const { baseFeePerGas } = await chain.client.getBlock();
  const { priorityFeePerGas } = getEvmChain(fixture.deps.chains, chain.id).network.fees;
  const value = 400_000n * (2n * (baseFeePerGas ?? 0n) + priorityFeePerGas);
  await chain.client.setBalance({ address, value });
  await fixture.relay();
  const sent = (await fixture.statesOf(ids)).filter((state) => state !== "ready");
  expect(sent.length).toBeGreaterThan(1);
  expect(sent.length).toBeLessThan(6);
  const [only] = await fixture.transactions();
  expect(only?.state).toBe("accepted");
  expect((only?.gas_limit ?? 0n) * (only?.max_fee_per_gas ?? 0n)).toBeLessThanOrEqual(value);
  await chain.client.setBalance({ address, value: 10n ** 18n });
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf(ids)).toEqual(ids.map(() => "confirmed"));
});

test("a lane with no nonce left in its window leaves the work to another lane in the same run", async () => {
  const chain = await startChain({ lanes: 3 });
  const fixture = await makeTransfersFixture(chain, { change: { laneWindow: 1, batchGas: 200_000 } });
  const ids = (await fixture.signAll(await fundBuyers(chain, 3))).map(({ id }) => id);
  await chain.client.setAutomine(false);
  await fixture.relay();
  expect((await fixture.transactions()).map((row) => [row.nonce, row.state])).toEqual([
    [0, "accepted"],
    [0, "accepted"],
  ]);
  // Both lanes have a transaction in flight: the third transfer waits, and the caller does not.
  expect(await fixture.relay()).toBe("idle");
  expect((await fixture.statesOf(ids)).toSorted()).toEqual(["assigned", "assigned", "ready"]);

  await mine(chain);
  expect(await fixture.watch()).toMatchObject({ mine: true });
  await fixture.relay();
  await mine(chain);
  expect(await fixture.watch()).toMatchObject({ mine: true });
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "confirmed", "confirmed"]);
});
