import { expect, test } from "vitest";
import { fundBuyer, mine, startChain, transfersTo, usdcBalance } from "../../support/chain.ts";
import { remember } from "../../support/remember.ts";
import { makeTill } from "../../support/till.ts";

const LATER_MS = 20_000;
const AMOUNT = 1_000_000n;
const DEEPEST = 5;

const chain = await startChain();
// Finality is deeper than every reorg of this file.
const till = await makeTill(chain, { change: { finality: { blocks: DEEPEST + 2 } } });
await mine(chain, 10);

/** Mines blocks, watches and relays, as workers do, until `isSo` holds or eight rounds have passed. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 8 && !(await isSo()); round += 1) {
    till.clock.advance(LATER_MS);
    await till.watch();
    await till.relay();
    await mine(chain, 3);
    await till.watch();
  }
}

test.each([1, 2, 3, 4, DEEPEST])(
  "a payment and its payout each survive a reorg of %i block(s): both are made, booked and reported once",
  async (depth) => {
    const buyer = await fundBuyer(chain);
    const countPaid = async () =>
      (await transfersTo(chain, chain.keys.treasury.address)).filter((log) => log.args.from === buyer.address).length;
    const paidOut = await usdcBalance(chain, till.destination);
    const paymentId = await till.create(100n);
    await till.verify(await till.attempt(paymentId, buyer));
    await till.watch();

    const reorgPayment = await remember(chain);
    await till.relay();
    await mine(chain, depth - 1);
    await till.watch();
    expect(await countPaid()).toBe(1);
    await reorgPayment();
    expect(await countPaid()).toBe(0);
    await till.watch();
    expect(await till.status(paymentId)).toMatchObject({ state: "processing" });
    await until(async () => (await till.status(paymentId)).state === "succeeded");

    const { id } = await till.settlementOf(paymentId);
    const reorgPayout = await remember(chain);
    await till.settle(id);
    await till.relay();
    await mine(chain, depth - 1);
    await till.watch();
    expect(await usdcBalance(chain, till.destination)).toBe(paidOut + AMOUNT);
    await reorgPayout();
    expect(await usdcBalance(chain, till.destination)).toBe(paidOut);
    await till.watch();
    expect(await till.settlementOf(paymentId)).toMatchObject({ state: "paying" });
    expect(await till.status(paymentId)).toMatchObject({ state: "succeeded" });
    await until(async () => (await till.settlementOf(paymentId)).state === "paid");

    expect(await countPaid()).toBe(1);
    expect(await usdcBalance(chain, till.destination)).toBe(paidOut + AMOUNT);
    const moves = await till.db.selectFrom("event").select("to_state").where("subject", "=", paymentId).execute();
    expect(moves.map((event) => event.to_state).sort()).toEqual(["processing", "requires_action", "succeeded"]);
    const transfers = (await till.transfers()).slice(-2);
    expect(transfers.map(({ state }) => state)).toEqual(["confirmed", "confirmed"]);
    const subjects = [...transfers.map((transfer) => transfer.id), id];
    const groups = await till.db.selectFrom("ledger_group").select("kind").where("subject", "in", subjects).execute();
    expect(groups.map(({ kind }) => kind).sort()).toEqual(["payment", "settlement_begun", "settlement_paid"]);
  },
);

test("after all reorgs the ledger contains only these payments and payouts", async () => {
  const groups = await till.db.selectFrom("ledger_group").select("kind").execute();
  expect(groups.filter(({ kind }) => kind !== "gas")).toHaveLength(3 * 5);
  expect(await usdcBalance(chain, chain.keys.treasury.address)).toBe(0n);
});
