import { expect, test } from "vitest";
import { insertBurnedGas } from "../../../../db/queries/burned-gas.ts";
import { MAX_INCLUSIONS } from "../../../../transfers/evm/gas-limits.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { insertLaneRow } from "../../../support/insert-rows.ts";
import { makeTransfersFixture, type TransfersFixture } from "../../../support/transfers-fixture.ts";

const DAY_MS = 24 * 3_600_000;

/** Records that a transaction burned gas and did not make a transfer. */
async function burnGas(
  { db, deps }: TransfersFixture,
  transferId: string,
  { payer, gas, alone }: { payer: string; gas: bigint; alone: boolean },
): Promise<void> {
  const [chain = ""] = deps.chains.keys();
  const lane = await insertLaneRow(db, chain);
  const transaction = { lane_id: lane.id, nonce: 0, block_number: 1, at: deps.now() };
  const of = { transfer_id: transferId, chain, payer: payer.toLowerCase(), code_hash: null };
  await insertBurnedGas(db, [{ ...of, ...transaction, gas, alone }]);
}

test("lanes send nothing for a barred payer with a plain key until the day is over, and go on sending for others", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  fixture.clock.stop();
  const payer = await fundBuyer(chain);
  const [burning, waiting] = [await fixture.sign(payer), await fixture.sign(payer)];
  for (let nonce = 0; nonce < MAX_INCLUSIONS; nonce += 1)
    await burnGas(fixture, burning.id, { payer: payer.address, gas: 50_000n, alone: true });
  await fixture.db.updateTable("transfer").set({ alone: true }).where("id", "=", burning.id).execute();
  const other = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  expect(await fixture.statesOf([waiting.id, other.id])).toEqual(["ready", "assigned"]);
  fixture.clock.advance(DAY_MS);
  await fixture.relay();
  expect(await fixture.statesOf([waiting.id, other.id])).toEqual(["assigned", "assigned"]);
});

test("while payments share no transactions, a payer whose money covers one of its payments has one in flight", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  fixture.clock.stop();
  const [payer, other] = [await fundBuyer(chain, 1_000_000n), await fundBuyer(chain)];
  const ids: string[] = [];
  for (const buyer of [payer, payer, payer, other]) {
    ids.push((await fixture.sign(buyer)).id);
    fixture.clock.advance(1);
  }
  const [first = ""] = ids;
  await burnGas(fixture, first, { payer: `0x${"ab".repeat(20)}`, gas: 10_000_001n, alone: false });
  await chain.client.setAutomine(false);
  await fixture.relay();
  expect(await fixture.statesOf(ids)).toEqual(["assigned", "ready", "ready", "assigned"]);
  expect(await fixture.transactions()).toHaveLength(2);
});
