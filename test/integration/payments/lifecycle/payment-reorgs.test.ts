import { expect, test } from "vitest";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, mine, startChain, transfersTo, usdcBalance } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

const LATER_MS = 20_000;
const AMOUNT = 1_000_000n;
const DEEPEST = 5;

const chain = await startChain();
// Finality is deeper than every reorg of this file.
const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: DEEPEST + 2 } } });
await mine(chain, 10);

/** Mines blocks, watches and relays, as workers do, until `isSo` holds or eight rounds have passed. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 8 && !(await isSo()); round += 1) {
    fixture.clock.advance(LATER_MS);
    await fixture.watch();
    await fixture.relay();
    await mine(chain, 3);
    await fixture.watch();
  }
}

test.each([1, 2, 3, 4, DEEPEST])(
  "a payment and its payout each survive a reorg of %i block(s): both are made, booked and reported once",
  async (depth) => {
    const buyer = await fundBuyer(chain);
    const countPaid = async () =>
      (await transfersTo(chain, chain.keys.treasury.address)).filter((log) => log.args.from === buyer.address).length;
    const paidOut = await usdcBalance(chain, fixture.destination);
    const paymentId = await fixture.create(100n);
    await fixture.verify(await fixture.attempt(paymentId, buyer));
    await fixture.watch();

    const reorgPayment = await prepareReorg(chain);
    await fixture.relay();
    await mine(chain, depth - 1);
    await fixture.watch();
    expect(await countPaid()).toBe(1);
    await reorgPayment();
    expect(await countPaid()).toBe(0);
    await fixture.watch();
    expect(await fixture.status(paymentId)).toMatchObject({ state: "processing" });
    await until(async () => (await fixture.status(paymentId)).state === "succeeded");

    const { id } = await fixture.settlementOf(paymentId);
    const reorgPayout = await prepareReorg(chain);
    await fixture.settle(id);
    await fixture.relay();
    await mine(chain, depth - 1);
    await fixture.watch();
    expect(await usdcBalance(chain, fixture.destination)).toBe(paidOut + AMOUNT);
    await reorgPayout();
    expect(await usdcBalance(chain, fixture.destination)).toBe(paidOut);
    await fixture.watch();
    expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "paying" });
    expect(await fixture.status(paymentId)).toMatchObject({ state: "succeeded" });
    await until(async () => (await fixture.settlementOf(paymentId)).state === "paid");

    expect(await countPaid()).toBe(1);
    expect(await usdcBalance(chain, fixture.destination)).toBe(paidOut + AMOUNT);
    const moves = await fixture.db.selectFrom("event").select("to_state").where("subject", "=", paymentId).execute();
    expect(moves.map((event) => event.to_state).sort()).toEqual(["processing", "requires_action", "succeeded"]);
    const transfers = (await fixture.transfers()).slice(-2);
    expect(transfers.map(({ state }) => state)).toEqual(["confirmed", "confirmed"]);
    const subjects = [...transfers.map((transfer) => transfer.id), id];
    const groups = await fixture.db
      .selectFrom("ledger_group")
      .select("kind")
      .where("subject", "in", subjects)
      .execute();
    expect(groups.map(({ kind }) => kind).sort()).toEqual(["payment", "settlement_begun", "settlement_paid"]);
  },
);

test("after all reorgs the ledger contains only these payments and payouts", async () => {
  const groups = await fixture.db.selectFrom("ledger_group").select("kind").execute();
  expect(groups.filter(({ kind }) => kind !== "gas")).toHaveLength(3 * 5);
  expect(await usdcBalance(chain, chain.keys.treasury.address)).toBe(0n);
});
