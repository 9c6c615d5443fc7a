import { expect, test } from "vitest";
import { newKey } from "../../../ops/local/networks-document.ts";
import {
  addDestinations,
  changeDestination,
  deleteDestination,
  listDestinations,
} from "../../../payments/destinations.ts";
import { readSystem } from "../../../payments/gauges.ts";
import { gatherPayouts, holdPayouts, listDestinationChanges } from "../../../payments/payout-policies.ts";
import { takeOwed } from "../../../payments/sweep.ts";
import { fundBuyer, fundBuyers, startChain, transfersTo } from "../../support/chain.ts";
import { good, makeTill, type Till } from "../../support/till.ts";

const chain = await startChain();

/** A till whose payouts gather for a minute, or until they come to an amount. */
async function makeGathering(amount?: bigint, minimum?: bigint) {
  const till = await makeTill(chain);
  const { accountId, merchantId, mode, deps } = till;
  const owner = { accountId, merchantId, mode };
  const [destination] = good(await listDestinations(deps, owner));
  good(await gatherPayouts(deps, { ...owner, id: destination?.id ?? "", gather: { ms: 60_000, amount, minimum } }));
  return till;
}
const settlements = (till: Till) => till.db.selectFrom("settlement").selectAll().orderBy("number").execute();
const rungFor = (till: Till) => till.rung.filter(({ queue }) => queue === "settle").map(({ bell }) => bell.data);

test("payments that succeed within the time are paid out in one transfer, and each is told of it", async () => {
  const till = await makeGathering();
  const payments: string[] = [];
  for (const buyer of await fundBuyers(chain, 3)) payments.push(await till.pay(buyer, 200n));
  const [settlement, ...others] = await settlements(till);
  expect(others).toEqual([]);
  expect(settlement).toMatchObject({ state: "gathering", amount: 6_000_000n, number: 1 });
  expect(rungFor(till)).toEqual([]);
  expect((await takeOwed(till.deps)).settlements).toEqual([]);

  till.clock.advance(61_000);
  await till.watch();
  const owed = (await takeOwed(till.deps)).settlements.flatMap(({ ids }) => ids);
  expect(owed).toEqual([settlement?.id]);
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

test("an amount that the first payment reaches is paid out at once as well", async () => {
  const till = await makeGathering(3_000_000n);
  await till.pay(await fundBuyer(chain), 400n);
  const [first] = await settlements(till);
  expect(rungFor(till)).toEqual([{ settlementIds: [first?.id] }]);
});

test("an accumulated payout stays open while its merchant is held, and what comes meanwhile is added to it", async () => {
  const till = await makeGathering();
  const owner = { accountId: till.accountId, merchantId: till.merchantId, mode: till.mode };
  await till.pay(await fundBuyer(chain), 100n);
  const [first] = await settlements(till);
  good(await holdPayouts(till.deps, { ...owner, hold: true }));
  await till.settle(first?.id ?? "");
  expect(await settlements(till)).toMatchObject([{ state: "gathering", amount: 1_000_000n }]);
  await till.pay(await fundBuyer(chain), 200n);
  expect(await settlements(till)).toMatchObject([{ state: "gathering", amount: 3_000_000n }]);
});

test("nothing is added to a payout that is being begun, and nothing is lost between the two", async () => {
  const till = await makeGathering();
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
  const till = await makeGathering();
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

test("an amount that is left out is a thousand units of the asset, and one that nobody knows has to be given", async () => {
  const till = await makeTill(chain);
  const { accountId, merchantId, mode, deps } = till;
  const owner = { accountId, merchantId, mode };
  const [{ id } = { id: "" }] = good(await listDestinations(deps, owner));
  expect(await gatherPayouts(deps, { ...owner, id, gather: { ms: 600_000 } })).toMatchObject({
    value: { seconds: 600, amount: 1_000_000_000n, minimum: null },
  });
  const { networks: _, ...bare } = deps;
  expect(await gatherPayouts(bare, { ...owner, id, gather: { ms: 600_000 } })).toMatchObject({
    code: "params_validation",
  });
  const bad = { ms: 600_000, amount: 5n, minimum: 6n };
  expect(await gatherPayouts(deps, { ...owner, id, gather: bad })).toMatchObject({ code: "params_validation" });
});

test("what has not come to the minimum gathers on, however long, and is paid out when it has", async () => {
  const till = await makeGathering(10_000_000n, 3_000_000n);
  await till.pay(await fundBuyer(chain), 200n);
  const [first] = await settlements(till);
  till.clock.advance(3_600_000);
  await till.watch();
  await till.settle(first?.id ?? "");
  expect(await settlements(till)).toMatchObject([{ state: "gathering", amount: 2_000_000n }]);
  till.clock.advance(-3_600_000);
  await till.pay(await fundBuyer(chain), 100n);
  till.clock.advance(3_600_000);
  await till.watch();
  await till.settle(first?.id ?? "");
  expect(await settlements(till)).toMatchObject([{ state: "paying", amount: 3_000_000n }]);
});

test("a merchant that an operator holds is paid nothing, keeps what it is owed, and holds up no other one", async () => {
  const till = await makeTill(chain);
  const other = await makeTill(chain, { databaseUrl: till.databaseUrl });
  const owner = { accountId: till.accountId, merchantId: till.merchantId, mode: till.mode };
  good(await holdPayouts(till.deps, { ...owner, hold: true }));
  const [one, two] = [await till.pay(await fundBuyer(chain)), await other.pay(await fundBuyer(chain))];
  const ids = [(await till.settlementOf(one)).id, (await till.settlementOf(two)).id];
  expect(await till.settle(...ids)).toEqual(["held", "begun"]);
  await till.relay();
  await till.watch();
  expect(await transfersTo(chain, till.destination)).toEqual([]);
  expect(await transfersTo(chain, other.destination)).toHaveLength(1);
  till.clock.advance(7_200_000);
  // An operator knows: nobody is called at night for it.
  expect((await readSystem(till.deps)).owed.find(({ table }) => table === "settlement")?.seconds).toBe(0);
  till.clock.advance(-7_200_000);
  good(await holdPayouts(till.deps, { ...owner, hold: false }));
  expect(await till.settle(ids[0] ?? "")).toEqual(["begun"]);
});

test("a destination that is not served any more is not paid, and holds up no other merchant", async () => {
  const till = await makeTill(chain);
  const other = await makeTill(chain, { databaseUrl: till.databaseUrl });
  const [one, two] = [await till.pay(await fundBuyer(chain)), await other.pay(await fundBuyer(chain))];
  const ids = [(await till.settlementOf(one)).id, (await till.settlementOf(two)).id];
  till.screened.add(till.destination.toLowerCase());
  expect(await till.settle(...ids)).toEqual(["not_served", "begun"]);
  expect(
    till.lines.some(
      (line) => line.includes("screening rejects the merchant's destination") && line.includes(till.merchantId),
    ),
  ).toBe(true);
});

test("a destination is refused when it is not served or an account of ours, and every change of one is kept", async () => {
  const till = await makeTill(chain, { settles: false });
  const { accountId, merchantId, mode, deps } = till;
  const owner = { accountId, merchantId, mode };
  const to = (address: string) => [{ asset: chain.asset, destination: `${chain.id}:${address}` }];
  const [bad, first, second] = [newKey().address, newKey().address, newKey().address];
  till.screened.add(bad.toLowerCase());
  for (const address of [bad, chain.keys.treasury.address, till.evm.collector, till.evm.permit2, till.evm.multicall])
    expect(await addDestinations(deps, { ...owner, settlements: to(address) })).toMatchObject({
      code: "params_validation",
    });
  const [{ id } = { id: "" }] = good(await addDestinations(deps, { ...owner, settlements: to(first) }));
  expect(await changeDestination(deps, { ...owner, id, destination: `${chain.id}:${bad}` })).toMatchObject({
    code: "params_validation",
  });
  good(await changeDestination(deps, { ...owner, id, destination: `${chain.id}:${second}` }));
  good(await deleteDestination(deps, { ...owner, id }));
  const [a, b] = [`${chain.id}:${first}`, `${chain.id}:${second}`];
  expect(await listDestinationChanges(deps, merchantId)).toMatchObject([
    { before: null, after: a },
    { before: a, after: b },
    { before: b, after: null },
  ]);
  await expect(till.db.deleteFrom("destination_change").execute()).rejects.toThrow(/append only/);
});
