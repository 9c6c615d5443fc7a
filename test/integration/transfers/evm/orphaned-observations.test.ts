import { expect, test } from "vitest";
import { confirmTransfers, listConfirmable } from "../../../../db/queries/confirmable-transfers.ts";
import { orphanObservations } from "../../../../db/queries/observations.ts";
import { fundBuyers, startChain } from "../../../support/evm-chain.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

/** Two transfers in separate blocks, both listed as confirmable. */
async function twoListed() {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: { finality: { blocks: 10 } } });
  const ids: string[] = [];
  for (const buyer of await fundBuyers(chain, 2)) {
    ids.push((await fixture.sign(buyer)).id);
    await fixture.relay();
    await fixture.watch();
  }
  const upTo = Number(await chain.client.getBlockNumber());
  const listed = await listConfirmable(fixture.db, { chain: chain.id, upTo, limit: 10 });
  expect(listed.map(({ id }) => id)).toEqual(ids);
  const confirm = (height: number) => confirmTransfers(fixture.db, { ids, upTo: height, at: fixture.deps.now() });
  return { chain, fixture, ids, listed, upTo, confirm };
}

test("a transfer whose observation is orphaned between listing and confirmation is not confirmed", async () => {
  const { chain, fixture, ids, listed, upTo, confirm } = await twoListed();
  const orphaned = await orphanObservations(fixture.db, { chain: chain.id, above: upTo - 1 });
  expect(orphaned).toEqual([ids[1]]);
  expect(await confirm(upTo)).toEqual([listed[0]]);
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "included"]);
});

test("a transfer whose observation moved above the final height is confirmed only later, with its new block", async () => {
  const { fixture, ids, listed, upTo, confirm } = await twoListed();
  const moved = { block_number: upTo + 1, block_id: `0x${"99".repeat(32)}`, tx_hash: `0x${"77".repeat(32)}` };
  await fixture.db
    .updateTable("observation")
    .set(moved)
    .where("transfer_id", "=", ids[1] ?? "")
    .execute();
  expect(await confirm(upTo)).toEqual([listed[0]]);
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "included"]);
  expect(await confirm(upTo + 1)).toEqual([{ ...listed[1], ...moved }]);
});
