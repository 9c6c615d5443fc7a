import { expect, test } from "vitest";
import { gatherPayouts, listDestinations } from "../../../payments/destinations.ts";
import { takeOwed } from "../../../payments/sweep.ts";
import { fundBuyer, fundBuyers, startChain, transfersTo } from "../../support/chain.ts";
import { good, makeTill, type Till } from "../../support/till.ts";

const chain = await startChain();

/** A till whose payouts gather for a minute, or until they come to an amount. */
async function makeGathering(amount: bigint | null) {
  const till = await makeTill(chain);
  const { accountId, merchantId, mode, deps } = till;
  const owner = { accountId, merchantId, mode };
  const [destination] = good(await listDestinations(deps, owner));
  good(await gatherPayouts(deps, { ...owner, id: destination?.id ?? "", gather: { ms: 60_000, amount } }));
  return till;
}
const settlements = (till: Till) => till.db.selectFrom("settlement").selectAll().orderBy("number").execute();
const rungFor = (till: Till) => till.rung.filter(({ queue }) => queue === "settle").map(({ bell }) => bell.data);

test("payments that succeed within the time are paid out in one transfer, and each is told of it", async () => {
  const till = await makeGathering(null);
  const payments: string[] = [];
  for (const buyer of await fundBuyers(chain, 3)) payments.push(await till.pay(buyer, 200n));
  const [settlement, ...others] = await settlements(till);
  expect(others).toEqual([]);
  expect(settlement).toMatchObject({ state: "gathering", amount: 6_000_000n, number: 1 });
  expect(rungFor(till)).toEqual([]);
  expect((await takeOwed(till.deps)).settlements).toEqual([]);

  till.clock.advance(61_000);
  const owed = (await takeOwed(till.deps)).settlements.map(({ id }) => id);
  expect(owed).toEqual([settlement?.id]);
  await till.watch();
  await till.settle(...owed);
  await till.relay();
  await till.watch();
  expect(await transfersTo(chain, till.destination)).toMatchObject([{ args: { value: 6_000_000n } }]);
  for (const paymentId of payments) expect((await till.settlementOf(paymentId)).state).toBe("paid");
});

test("an amount that is reached is paid out at once, and what comes afterwards gathers anew", async () => {
  const till = await makeGathering(3_000_000n);
  await till.pay(await fundBuyer(chain), 200n);
  expect(rungFor(till)).toEqual([]);
  await till.pay(await fundBuyer(chain), 200n);
  const [first] = await settlements(till);
  expect(rungFor(till)).toEqual([{ settlementIds: [first?.id] }]);
  await till.settle(first?.id ?? "");
  await till.pay(await fundBuyer(chain), 100n);
  expect(await settlements(till)).toMatchObject([
    { amount: 4_000_000n, number: 1, state: "paid" },
    { amount: 1_000_000n, number: 2, state: "gathering" },
  ]);
});

test("nothing is added to a payout that is being begun, and nothing is lost between the two", async () => {
  const till = await makeGathering(null);
  await till.pay(await fundBuyer(chain), 100n);
  const [first] = await settlements(till);
  const buyers = await fundBuyers(chain, 6);
  await Promise.all([
    ...buyers.map(async (buyer) => till.verify(await till.attempt(await till.create(100n), buyer))),
    till.settle(first?.id ?? ""),
  ]);
  await till.relay();
  await Promise.all([till.watch(), till.settle(first?.id ?? "")]);
  await till.watch();
  const all = await settlements(till);
  expect(all.reduce((sum, { amount }) => sum + amount, 0n)).toBe(7_000_000n);
  const [paying] = await till.transfers().then((rows) => rows.filter(({ purpose }) => purpose === "settlement"));
  expect(paying?.amount).toBe(all[0]?.amount);
});

test("payments that are paid at once again leave what gathers as it is", async () => {
  const till = await makeGathering(null);
  await till.pay(await fundBuyer(chain), 100n);
  const { accountId, merchantId, mode, deps } = till;
  const owner = { accountId, merchantId, mode };
  const [destination] = good(await listDestinations(deps, owner));
  good(await gatherPayouts(deps, { ...owner, id: destination?.id ?? "", gather: undefined }));
  await till.pay(await fundBuyer(chain), 200n);
  expect(await settlements(till)).toMatchObject([
    { state: "gathering", amount: 1_000_000n },
    { state: "due", amount: 2_000_000n },
  ]);
});
