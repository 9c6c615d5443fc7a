import { describe, expect, test } from "vitest";
import { type Carrier, makeCarrier, relayByStranger } from "../../support/carry.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../../support/chain.ts";
import { remember } from "../../support/remember.ts";

const LATER_MS = 20_000;
const finality = { finality: { blocks: 5 } };

const eventsOf = (carrier: Carrier, id: string) =>
  carrier.db.selectFrom("event").select(["from_state", "to_state"]).where("subject", "=", id).orderBy("id").execute();

describe.each([1, 2, 3])("a reorg of %i blocks after a transfer was included", (depth) => {
  test("a transfer that a reorg removes lands again from the same bytes, is confirmed once, and its observation is orphaned", async () => {
    const chain = await startChain();
    const carrier = await makeCarrier(chain, { change: finality });
    const one = await carrier.sign(await fundBuyer(chain));
    await mine(chain, 3);
    await carrier.watch();
    const reorg = await remember(chain);
    await carrier.relay();
    await carrier.watch();
    await mine(chain, depth - 1);
    await carrier.watch();
    expect(await carrier.statesOf([one.id])).toEqual(["included"]);
    const [before] = await carrier.sightings();

    await reorg();
    expect(await transfersTo(chain, chain.keys.treasury.address)).toEqual([]);
    await carrier.watch();
    expect(await carrier.statesOf([one.id])).toEqual(["carried"]);
    expect((await carrier.sightings()).map((row) => row.orphaned)).toEqual([true]);
    expect(carrier.confirmed).toEqual([]);

    carrier.clock.advance(LATER_MS);
    await carrier.watch();
    await carrier.watch();
    expect(await carrier.statesOf([one.id])).toEqual(["included"]);
    await mine(chain, 5);
    await carrier.watch();
    await carrier.watch();
    expect(carrier.confirmed.map(({ id, tx_hash }) => ({ id, tx_hash }))).toEqual([
      { id: one.id, tx_hash: before?.tx_hash },
    ]);
    expect(carrier.confirmed[0]?.block_hash).not.toBe(before?.block_hash);
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
    expect((await carrier.transactions()).map((row) => row.state)).toEqual(["final"]);
    const moves = (await eventsOf(carrier, one.id)).map((event) => event.to_state);
    expect(moves).toEqual(["ready", "carried", "included", "carried", "included", "confirmed"]);
  });
});

test("a reorg that leaves the chain at the same height is noticed without a new block", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain, { change: finality });
  const one = await carrier.sign(await fundBuyer(chain));
  await carrier.watch();
  const reorg = await remember(chain);
  await carrier.relay();
  await carrier.watch();
  const head = await chain.client.getBlockNumber();
  await reorg();
  expect(await chain.client.getBlockNumber()).toBe(head);
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["carried"]);
});

test("a reorg that moves a transfer to another block changes its proof and nothing else", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain, { change: finality });
  const one = await carrier.sign(await fundBuyer(chain));
  await carrier.watch();
  const reorg = await remember(chain);
  await carrier.relay();
  await carrier.watch();
  const [transaction] = await carrier.transactions();
  await reorg();
  const serializedTransaction = `0x${transaction?.bytes.toString("hex")}` as const;
  await chain.client.sendRawTransaction({ serializedTransaction });
  await carrier.watch();
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["included"]);
  const sightings = await carrier.sightings();
  expect(sightings.map((row) => row.orphaned).sort()).toEqual([false, true]);
  await mine(chain, 5);
  await carrier.watch();
  expect(carrier.confirmed).toHaveLength(1);
});

test("a third party's relay that a reorg removes makes the transfer ready again, and a lane sends it", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain, { change: finality });
  const one = await carrier.sign(await fundBuyer(chain));
  await carrier.watch();
  const reorg = await remember(chain);
  await relayByStranger(chain, one.call);
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["included"]);
  await reorg();
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["ready"]);
  const [row] = await carrier.rowsOf([one.id]);
  expect(row?.due_at?.getTime(), "the sweep finds it").toBeLessThanOrEqual(carrier.deps.now().getTime());
  await carrier.relay();
  await mine(chain, 5);
  await carrier.watch();
  expect(carrier.confirmed).toHaveLength(1);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("a confirmed transfer stays confirmed after a deeper reorg, its bytes are sent again, and it is not confirmed twice", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain, { change: { finality: { blocks: 1 } } });
  const one = await carrier.sign(await fundBuyer(chain));
  await carrier.watch();
  const reorg = await remember(chain);
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  await reorg();
  for (let pass = 0; pass < 3; pass += 1) {
    await carrier.watch();
    carrier.clock.advance(LATER_MS);
    await mine(chain);
  }
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  expect(carrier.confirmed).toHaveLength(1);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
  expect((await carrier.transactions()).map(({ nonce, state }) => [nonce, state])).toEqual([[0, "final"]]);
});

test("the watcher follows a reorg of the block at which the first watch began", async () => {
  const chain = await startChain();
  await mine(chain, 3);
  const reorg = await remember(chain);
  await mine(chain);
  const carrier = await makeCarrier(chain, { change: finality });
  await reorg();
  await mine(chain, 2);
  await carrier.watch();
  const one = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  await mine(chain, 5);
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
});
