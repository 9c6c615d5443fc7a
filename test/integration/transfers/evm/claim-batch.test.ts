import { expect, test } from "vitest";
import { insertBurnedGas } from "../../../../db/queries/burned-gas.ts";
import { MAX_INCLUSIONS } from "../../../../transfers/evm/gas-limits.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { insertLaneRow } from "../../../support/insert-rows.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const DAY_MS = 24 * 3_600_000;

test("lanes send nothing for a barred payer with a plain key until the day is over, and go on sending for others", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  fixture.clock.stop();
  const payer = await fundBuyer(chain);
  const [burning, waiting] = [await fixture.sign(payer), await fixture.sign(payer)];
  const lane = await insertLaneRow(fixture.db, chain.id);
  const burned = {
    transfer_id: burning.id,
    lane_id: lane.id,
    chain: chain.id,
    payer: payer.address.toLowerCase(),
    code_hash: null,
    gas: 50_000n,
    alone: true,
    block_number: 1,
    at: fixture.deps.now(),
  };
  await insertBurnedGas(
    fixture.db,
    Array.from({ length: MAX_INCLUSIONS }, (_one, nonce) => ({ ...burned, nonce })),
  );
  await fixture.db.updateTable("transfer").set({ alone: true }).where("id", "=", burning.id).execute();
  const other = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  expect(await fixture.statesOf([waiting.id, other.id])).toEqual(["ready", "assigned"]);
  fixture.clock.advance(DAY_MS);
  await fixture.relay();
  expect(await fixture.statesOf([waiting.id, other.id])).toEqual(["assigned", "assigned"]);
});
