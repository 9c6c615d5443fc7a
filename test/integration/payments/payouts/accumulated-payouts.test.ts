import { expect, test } from "vitest";
import { listDestinationChanges } from "../../../../db/queries/destination-changes.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { takeDueWork } from "../../../../payments/maintenance/take-due-rows.ts";
import {
  addDestinations,
  changeDestination,
  deleteDestination,
  listDestinations,
} from "../../../../payments/merchants/destinations.ts";
import { holdPayouts, setPayoutSchedule } from "../../../../payments/payouts/payout-policies.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { fundBuyer, fundBuyers, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { readSystemStatus } from "../../../support/read-system-status.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();

/** Returns a merchant fixture whose payouts accumulate for a minute, or until they reach `amount`. */
async function makeAccumulating(amount?: bigint, minimum?: bigint) {
  const fixture = await makeMerchantFixture(chain);
  await accumulatePayouts(fixture, { ms: 60_000, amount, minimum });
  return fixture;
}
const settlements = (fixture: MerchantFixture) =>
  fixture.db.selectFrom("settlement").selectAll().orderBy("number").execute();
const settleJobsOf = (fixture: MerchantFixture) =>
  fixture.enqueued.filter(({ queue }) => queue === "settle").map(({ job }) => job.data);

test("payments that succeed within the accumulation time are paid out in one transfer", async () => {
  const fixture = await makeAccumulating();
  const payments: string[] = [];
  for (const buyer of await fundBuyers(chain, 3)) payments.push(await fixture.pay(buyer, 200n));
  const [settlement, ...others] = await settlements(fixture);
  expect(others).toEqual([]);
  expect(settlement).toMatchObject({ state: "accumulating", amount: 6_000_000n, number: 1 });
  expect(settleJobsOf(fixture)).toEqual([]);
  expect(await takeDueWork(fixture.deps, "settlements")).toEqual([]);

  fixture.clock.advance(61_000);
  await fixture.watch();
  const owed = (await takeDueWork(fixture.deps, "settlements")).flatMap(({ ids }) => ids);
  expect(owed).toEqual([settlement?.id]);
  await fixture.settle(...owed);
  await fixture.relay();
  await fixture.watch();
  expect(await transfersTo(chain, fixture.destination)).toMatchObject([{ args: { value: 6_000_000n } }]);
  for (const paymentId of payments) expect((await fixture.settlementOf(paymentId)).state).toBe("paid");
});

test("an accumulated payout that reaches its amount is paid at once, and the next payment starts a new one", async () => {
  const fixture = await makeAccumulating(3_000_000n);
  await fixture.pay(await fundBuyer(chain), 200n);
  expect(settleJobsOf(fixture)).toEqual([]);
  await fixture.pay(await fundBuyer(chain), 200n);
  const [first] = await settlements(fixture);
  expect(settleJobsOf(fixture)).toEqual([{ settlementIds: [first?.id] }]);
  await fixture.settle(first?.id ?? "");
  await fixture.pay(await fundBuyer(chain), 100n);
  expect(await settlements(fixture)).toMatchObject([
    { amount: 4_000_000n, number: 1, state: "paid" },
    { amount: 1_000_000n, number: 2, state: "accumulating" },
  ]);
});

test("a single payment that reaches the amount is paid out at once", async () => {
  const fixture = await makeAccumulating(3_000_000n);
  await fixture.pay(await fundBuyer(chain), 400n);
  const [first] = await settlements(fixture);
  expect(settleJobsOf(fixture)).toEqual([{ settlementIds: [first?.id] }]);
});

test("an accumulated payout of a held merchant stays open, and later payments are added to it", async () => {
  const fixture = await makeAccumulating();
  const owner = { accountId: fixture.accountId, merchantId: fixture.merchantId, mode: fixture.mode };
  await fixture.pay(await fundBuyer(chain), 100n);
  const [first] = await settlements(fixture);
  unwrap(await holdPayouts(fixture.deps, { actor: testActor, ...owner, hold: true }));
  await fixture.settle(first?.id ?? "");
  expect(await settlements(fixture)).toMatchObject([{ state: "accumulating", amount: 1_000_000n }]);
  await fixture.pay(await fundBuyer(chain), 200n);
  expect(await settlements(fixture)).toMatchObject([{ state: "accumulating", amount: 3_000_000n }]);
});

test("no payment is added to a payout that is beginning, and none is lost between two payouts", async () => {
  const fixture = await makeAccumulating();
  await fixture.pay(await fundBuyer(chain), 100n);
  const [first] = await settlements(fixture);
  const buyers = await fundBuyers(chain, 6);
  await Promise.all([
    ...buyers.map(async (buyer) => fixture.verify(await fixture.attempt(await fixture.create(100n), buyer))),
    fixture.settle(first?.id ?? ""),
  ]);
  await fixture.relay();
  await Promise.all([fixture.watch(), fixture.settle(first?.id ?? "")]);
  await fixture.watch();
  const all = await settlements(fixture);
  expect(all.reduce((sum, { amount }) => sum + amount, 0n)).toBe(7_000_000n);
  const [paying] = await fixture.transfers().then((rows) => rows.filter(({ purpose }) => purpose === "settlement"));
  expect(paying?.amount).toBe(all[0]?.amount);
});

test("switching back to immediate payouts leaves the accumulated payout unchanged", async () => {
  const fixture = await makeAccumulating();
  await fixture.pay(await fundBuyer(chain), 100n);
  const { accountId, merchantId, mode, deps } = fixture;
  const owner = { accountId, merchantId, mode };
  const [destination] = unwrap(await listDestinations(deps, owner));
  unwrap(await setPayoutSchedule(deps, { actor: testActor, ...owner, id: destination?.id ?? "", schedule: undefined }));
  await fixture.pay(await fundBuyer(chain), 200n);
  expect(await settlements(fixture)).toMatchObject([
    { state: "accumulating", amount: 1_000_000n },
    { state: "due", amount: 2_000_000n },
  ]);
});

test("the accumulation amount defaults to a thousand units of the asset and is required for an unknown asset", async () => {
  const fixture = await makeMerchantFixture(chain);
  const { accountId, merchantId, mode, deps } = fixture;
  const owner = { accountId, merchantId, mode };
  const [{ id } = { id: "" }] = unwrap(await listDestinations(deps, owner));
  expect(await setPayoutSchedule(deps, { actor: testActor, ...owner, id, schedule: { ms: 600_000 } })).toMatchObject({
    value: { seconds: 600, amount: 1_000_000_000n, minimum: null },
  });
  const { networks: _, ...bare } = deps;
  expect(await setPayoutSchedule(bare, { actor: testActor, ...owner, id, schedule: { ms: 600_000 } })).toMatchObject({
    code: "params_validation",
  });
  const bad = { ms: 600_000, amount: 5n, minimum: 6n };
  expect(await setPayoutSchedule(deps, { actor: testActor, ...owner, id, schedule: bad })).toMatchObject({
    code: "params_validation",
  });
});

test("an accumulated payout below the minimum stays open after its time and is paid once it reaches the minimum", async () => {
  const fixture = await makeAccumulating(10_000_000n, 3_000_000n);
  await fixture.pay(await fundBuyer(chain), 200n);
  const [first] = await settlements(fixture);
  fixture.clock.advance(3_600_000);
  await fixture.watch();
  await fixture.settle(first?.id ?? "");
  expect(await settlements(fixture)).toMatchObject([{ state: "accumulating", amount: 2_000_000n }]);
  fixture.clock.advance(-3_600_000);
  await fixture.pay(await fundBuyer(chain), 100n);
  fixture.clock.advance(3_600_000);
  await fixture.watch();
  await fixture.settle(first?.id ?? "");
  expect(await settlements(fixture)).toMatchObject([{ state: "paying", amount: 3_000_000n }]);
});

test("a held merchant is not paid, keeps its balance and does not delay other merchants", async () => {
  const fixture = await makeMerchantFixture(chain);
  const other = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
  const owner = { accountId: fixture.accountId, merchantId: fixture.merchantId, mode: fixture.mode };
  unwrap(await holdPayouts(fixture.deps, { actor: testActor, ...owner, hold: true }));
  const [one, two] = [await fixture.pay(await fundBuyer(chain)), await other.pay(await fundBuyer(chain))];
  const ids = [(await fixture.settlementOf(one)).id, (await fixture.settlementOf(two)).id];
  expect(await fixture.settle(...ids)).toEqual(["held", "begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await transfersTo(chain, fixture.destination)).toEqual([]);
  expect(await transfersTo(chain, other.destination)).toHaveLength(1);
  fixture.clock.advance(7_200_000);
  // The operator holds it on purpose, so it must not raise an alert.
  expect((await readSystemStatus(fixture.deps)).overdue.find(({ queue }) => queue === "settle")?.seconds).toBe(0);
  fixture.clock.advance(-7_200_000);
  unwrap(await holdPayouts(fixture.deps, { actor: testActor, ...owner, hold: false }));
  expect(await fixture.settle(ids[0] ?? "")).toEqual(["begun"]);
});

test("a screened destination is not paid and does not delay other merchants", async () => {
  const fixture = await makeMerchantFixture(chain);
  const other = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
  const [one, two] = [await fixture.pay(await fundBuyer(chain)), await other.pay(await fundBuyer(chain))];
  const ids = [(await fixture.settlementOf(one)).id, (await fixture.settlementOf(two)).id];
  fixture.screened.add(fixture.destination.toLowerCase());
  expect(await fixture.settle(...ids)).toEqual(["not_served", "begun"]);
  expect(
    fixture.lines.some(
      (line) => line.includes("screening rejects the merchant's destination") && line.includes(fixture.merchantId),
    ),
  ).toBe(true);
});

test("the service's own accounts are refused as destinations, and every destination change is recorded", async () => {
  const fixture = await makeMerchantFixture(chain, { settles: false });
  const { accountId, merchantId, mode, deps } = fixture;
  const owner = { accountId, merchantId, mode };
  const to = (address: string) => [{ asset: chain.asset, destination: `${chain.id}:${address}` }];
  const [first, second] = [newKey().address, newKey().address];
  for (const address of [
    chain.keys.treasury.address,
    fixture.evm.collector,
    fixture.evm.permit2,
    fixture.evm.multicall,
  ])
    expect(await addDestinations(deps, { actor: testActor, ...owner, settlements: to(address) })).toMatchObject({
      code: "params_validation",
    });
  const [{ id } = { id: "" }] = unwrap(
    await addDestinations(deps, { actor: testActor, ...owner, settlements: to(first) }),
  );
  unwrap(await changeDestination(deps, { actor: testActor, ...owner, id, destination: `${chain.id}:${second}` }));
  unwrap(await deleteDestination(deps, { actor: testActor, ...owner, id }));
  const [a, b] = [`${chain.id}:${first}`, `${chain.id}:${second}`];
  expect(await listDestinationChanges(deps.db, { merchantId }, { limit: 10 })).toMatchObject([
    { before: b, after: null, state: "applied" },
    { before: a, after: b, state: "applied" },
    { before: null, after: a, state: "applied" },
  ]);
  await expect(fixture.db.deleteFrom("destination_change").execute()).rejects.toThrow(/append only/);
});
