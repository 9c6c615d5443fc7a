import { expect, test } from "vitest";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyer, fundBuyers, mine, startChain, type TestChain, transfersTo } from "../../support/chain.ts";

/** Returns the lanes of plain keys in the order in which unused lanes are taken: by name. */
const lanesInOrder = (chain: TestChain) =>
  chain.keys.lanes
    .slice(0, -1)
    .map(({ address }) => address)
    .toSorted((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));

test("a lane without gas leaves the work to another lane, and works again once it has gas", async () => {
  const chain = await startChain({ lanes: 3 });
  const carrier = await makeCarrier(chain);
  const [broke = "0x", rich = "0x"] = lanesInOrder(chain);
  await chain.client.setBalance({ address: broke, value: 0n });
  const first = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  expect(await carrier.transactions()).toMatchObject([
    { lane_id: `${chain.id}:${rich.toLowerCase()}`, state: "accepted" },
  ]);

  const ids: string[] = [];
  for (const buyer of await fundBuyers(chain, 3)) {
    ids.push((await carrier.sign(buyer)).id);
    await carrier.relay();
    await carrier.watch();
  }
  expect(await carrier.statesOf([first.id, ...ids])).toEqual(["confirmed", "confirmed", "confirmed", "confirmed"]);
  const sent = (await carrier.transactions()).filter((row) => row.state === "final");
  expect(new Set(sent.map((row) => row.lane_id))).toEqual(new Set([`${chain.id}:${rich.toLowerCase()}`]));

  await chain.client.setBalance({ address: broke, value: 10n ** 18n });
  await chain.client.setBalance({ address: rich, value: 0n });
  const last = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([last.id])).toEqual(["confirmed"]);
  const lanes = (await carrier.transactions()).map((row) => row.lane_id);
  expect(lanes.filter((lane) => lane === `${chain.id}:${broke.toLowerCase()}`)).toHaveLength(1);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(5);
});

test("a transfer waits for the first lane with gas while no lane has any, and holds no nonce", async () => {
  const chain = await startChain({ lanes: 3 });
  const carrier = await makeCarrier(chain);
  for (const address of lanesInOrder(chain)) await chain.client.setBalance({ address, value: 0n });
  const one = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  expect(await carrier.transactions()).toEqual([]);
  expect(await carrier.statesOf([one.id])).toEqual(["ready"]);
  await chain.client.setBalance({ address: lanesInOrder(chain)[1] ?? "0x", value: 10n ** 18n });
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
});

test("a lane with no nonce left in its window leaves the work to another lane in the same run", async () => {
  const chain = await startChain({ lanes: 3 });
  const carrier = await makeCarrier(chain, { change: { laneWindow: 1, batchGas: 200_000 } });
  const ids = (await carrier.signAll(await fundBuyers(chain, 3))).map(({ id }) => id);
  await chain.client.setAutomine(false);
  await carrier.relay();
  expect((await carrier.transactions()).map((row) => [row.nonce, row.state])).toEqual([
    [0, "accepted"],
    [0, "accepted"],
  ]);
  // Both lanes have a transaction in flight: the third transfer waits, and the caller does not.
  expect(await carrier.relay()).toBe("idle");
  expect((await carrier.statesOf(ids)).toSorted()).toEqual(["carried", "carried", "ready"]);

  // The watcher reports the waiting transfer, now that a lane has room.
  await mine(chain);
  const pass = await carrier.watch();
  expect(pass).toMatchObject({ mine: true, moved: true, waiting: [{ id: expect.any(String), smart_wallet: false }] });
  await carrier.relay();
  await mine(chain);
  expect(await carrier.watch()).toMatchObject({ waiting: [] });
  expect(await carrier.statesOf(ids)).toEqual(["confirmed", "confirmed", "confirmed"]);
});
