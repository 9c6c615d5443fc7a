import { expect, test } from "vitest";
import { getEvmChain } from "../../../../chains/open-chains.ts";
import { insertBurnedGas } from "../../../../db/queries/burned-gas.ts";
import { endUnproductiveTransfers } from "../../../../transfers/evm/end-fruitless.ts";
import { MAX_INCLUSIONS } from "../../../../transfers/evm/gas-limits.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { insertLaneRow, insertMerchant, insertTransferRow } from "../../../support/insert-rows.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

test("an unproductive transfer whose end cannot be booked keeps no other one from ending, and is stored as a failed booking", async () => {
  const chain = await startChain();
  const { db, deps } = await makeTransfersFixture(chain);
  const merchant = await insertMerchant(db);
  const lane = await insertLaneRow(db, chain.id);
  const payer = `0x${"a1".repeat(20)}`;
  const add = async (at: Date) => {
    const { id } = await insertTransferRow(db, merchant, { asset: chain.asset, payer }, at);
    const burned = { transfer_id: id, lane_id: lane.id, chain: chain.id, payer, code_hash: null, gas: 1n, alone: true };
    const rows = Array.from({ length: MAX_INCLUSIONS }, (_one, nonce) => ({ ...burned, nonce, block_number: 1, at }));
    await insertBurnedGas(db, rows);
    return id;
  };
  const [bad, good] = [await add(new Date(Date.now() - 60_000)), await add(new Date())];
  const tried: string[] = [];
  const endAll = () =>
    endUnproductiveTransfers(deps, getEvmChain(deps.chains, chain.id), async (_db, [transfer]) => {
      tried.push(transfer?.id ?? "");
      if (transfer?.id === bad) throw new Error("the payment's row is damaged");
      return () => undefined;
    });
  await endAll();
  await endAll();
  expect(tried, "the failed booking waits for its retry").toEqual([bad, good]);
  const states = await db.selectFrom("transfer").select(["id", "state"]).orderBy("created_at").execute();
  expect(states).toEqual([
    { id: bad, state: "ready" },
    { id: good, state: "ended" },
  ]);
  const failed = await db.selectFrom("failed_booking").select(["kind", "subject"]).execute();
  expect(failed).toEqual([{ kind: "ended", subject: bad }]);
});
