import { expect, test } from "vitest";
import { orphanSightings } from "../../../db/sightings.ts";
import { confirmTransfers, listConfirmable } from "../../../db/transfers.ts";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyers, startChain } from "../../support/chain.ts";

/** Two transfers in separate blocks, both listed as confirmable. */
async function twoListed() {
  const chain = await startChain();
  const carrier = await makeCarrier(chain, { change: { finality: { blocks: 10 } } });
  const ids: string[] = [];
  for (const buyer of await fundBuyers(chain, 2)) {
    ids.push((await carrier.sign(buyer)).id);
    await carrier.relay();
    await carrier.watch();
  }
  const upTo = Number(await chain.client.getBlockNumber());
  const listed = await listConfirmable(carrier.db, { chain: chain.id, upTo, limit: 10 });
  expect(listed.map(({ id }) => id)).toEqual(ids);
  const confirm = (height: number) => confirmTransfers(carrier.db, { ids, upTo: height, at: carrier.deps.now() });
  return { chain, carrier, ids, listed, upTo, confirm };
}

test("a transfer whose observation is orphaned between listing and confirmation is not confirmed", async () => {
  const { chain, carrier, ids, listed, upTo, confirm } = await twoListed();
  const orphaned = await orphanSightings(carrier.db, { chain: chain.id, above: upTo - 1 });
  expect(orphaned).toEqual([ids[1]]);
  expect(await confirm(upTo)).toEqual([listed[0]]);
  expect(await carrier.statesOf(ids)).toEqual(["confirmed", "included"]);
});

test("a transfer whose observation moved above the final height is confirmed only later, with its new block", async () => {
  const { carrier, ids, listed, upTo, confirm } = await twoListed();
  const moved = { block_number: upTo + 1, block_hash: `0x${"99".repeat(32)}`, tx_hash: `0x${"77".repeat(32)}` };
  await carrier.db
    .updateTable("sighting")
    .set(moved)
    .where("transfer_id", "=", ids[1] ?? "")
    .execute();
  expect(await confirm(upTo)).toEqual([listed[0]]);
  expect(await carrier.statesOf(ids)).toEqual(["confirmed", "included"]);
  expect(await confirm(upTo + 1)).toEqual([{ ...listed[1], ...moved }]);
});
