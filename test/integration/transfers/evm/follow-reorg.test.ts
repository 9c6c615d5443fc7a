import { describe, expect, test } from "vitest";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { makeTransfersFixture, relayByThirdParty, type TransfersFixture } from "../../../support/transfers-fixture.ts";

const LATER_MS = 20_000;
const finality = { finality: { blocks: 5 } };

const eventsOf = (fixture: TransfersFixture, id: string) =>
  fixture.db.selectFrom("event").select(["from_state", "to_state"]).where("subject", "=", id).orderBy("id").execute();

describe.each([1, 2, 3])("a reorg of %i blocks after a transfer was included", (depth) => {
  test("a transfer that a reorg removes lands again from the same bytes, is confirmed once, and its observation is orphaned", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain, { change: finality });
    const one = await fixture.sign(await fundBuyer(chain));
    await mine(chain, 3);
    await fixture.watch();
    const reorg = await prepareReorg(chain);
    await fixture.relay();
    await fixture.watch();
    await mine(chain, depth - 1);
    await fixture.watch();
    expect(await fixture.statesOf([one.id])).toEqual(["included"]);
    const [before] = await fixture.observations();

    await reorg();
    expect(await transfersTo(chain, chain.keys.treasury.address)).toEqual([]);
    await fixture.watch();
    expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
    expect((await fixture.observations()).map((row) => row.orphaned)).toEqual([true]);
    expect(fixture.confirmed).toEqual([]);

    fixture.clock.advance(LATER_MS);
    await fixture.watch();
    await fixture.watch();
    expect(await fixture.statesOf([one.id])).toEqual(["included"]);
    await mine(chain, 5);
    await fixture.watch();
    await fixture.watch();
    expect(fixture.confirmed.map(({ id, tx_hash }) => ({ id, tx_hash }))).toEqual([
      { id: one.id, tx_hash: before?.tx_hash },
    ]);
    expect(fixture.confirmed[0]?.block_id).not.toBe(before?.block_id);
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
    expect((await fixture.transactions()).map((row) => row.state)).toEqual(["final"]);
    const moves = (await eventsOf(fixture, one.id)).map((event) => event.to_state);
    expect(moves).toEqual(["ready", "assigned", "included", "assigned", "included", "confirmed"]);
  });
});

test("a reorg that leaves the chain at the same height is noticed without a new block", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: finality });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await fixture.relay();
  await fixture.watch();
  const head = await chain.client.getBlockNumber();
  await reorg();
  expect(await chain.client.getBlockNumber()).toBe(head);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
});

test("a reorg that moves a transfer to another block changes its proof and nothing else", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: finality });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await fixture.relay();
  await fixture.watch();
  const [transaction] = await fixture.transactions();
  await reorg();
  const serializedTransaction = `0x${transaction?.bytes.toString("hex")}` as const;
  await chain.client.sendRawTransaction({ serializedTransaction });
  await fixture.watch();
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["included"]);
  const observations = await fixture.observations();
  expect(observations.map((row) => row.orphaned).sort()).toEqual([false, true]);
  await mine(chain, 5);
  await fixture.watch();
  expect(fixture.confirmed).toHaveLength(1);
});

test("a third party's relay that a reorg removes makes the transfer ready again, and a lane sends it", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: finality });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await relayByThirdParty(chain, one.call);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["included"]);
  await reorg();
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
  const [row] = await fixture.rowsOf([one.id]);
  expect(row?.due_at?.getTime(), "the sweep finds it").toBeLessThanOrEqual(fixture.deps.now().getTime());
  await fixture.relay();
  await mine(chain, 5);
  await fixture.watch();
  expect(fixture.confirmed).toHaveLength(1);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("a confirmed transfer stays confirmed after a deeper reorg, its bytes are sent again, and it is not confirmed twice", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: { finality: { blocks: 1 } } });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  await reorg();
  for (let pass = 0; pass < 3; pass += 1) {
    await fixture.watch();
    fixture.clock.advance(LATER_MS);
    await mine(chain);
  }
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect(fixture.confirmed).toHaveLength(1);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
  expect((await fixture.transactions()).map(({ nonce, state }) => [nonce, state])).toEqual([[0, "final"]]);
});

test("the watcher follows a reorg of the block at which the first watch began", async () => {
  const chain = await startChain();
  await mine(chain, 3);
  const reorg = await prepareReorg(chain);
  await mine(chain);
  const fixture = await makeTransfersFixture(chain, { change: finality });
  await reorg();
  await mine(chain, 2);
  await fixture.watch();
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  await mine(chain, 5);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});
