import { sql } from "kysely";
import { expect, test } from "vitest";
import { creditMerchants, insertGroups } from "../../../../db/queries/ledger-groups.ts";
import { lockNotBegun } from "../../../../db/queries/settlements.ts";
import { unmatchedGroup } from "../../../../payments/accounting/ledger-groups.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { retryPayment } from "../../../../payments/maintenance/operator-actions.ts";
import { accrue } from "../../../../payments/payouts/accrue.ts";
import { holdPayouts } from "../../../../payments/payouts/payout-policies.ts";
import { withdrawRefund } from "../../../../payments/payouts/withdraw-refunds.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { failuresOf, insertLatePayout, openSharing, requestRefund, waitForLocks } from "../../../support/lock-races.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { settlementsOf, work } from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";

const UNIT = 1_000_000n;

test("a payout that is adopted with more than its settlement and a refund that begins meanwhile do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 300n));
  const paid = await fixture.pay(await fundBuyer(chain), 500n);
  const { id: next } = await fixture.settlementOf(paid);
  expect(await fixture.settle(id)).toEqual(["begun"]);
  const refundId = await requestRefund(fixture, paid, 1n * UNIT);
  const { refunding, adopting } = await fixture.db.transaction().execute(async (db) => {
    await lockNotBegun(db, [next]);
    const refunding = fixture.refund(refundId);
    await waitForLocks(fixture, 1);
    await insertLatePayout(fixture, { id, amount: 4n * UNIT });
    const adopting = fixture.relay();
    await waitForLocks(fixture, 2);
    return { refunding, adopting };
  });
  expect((await Promise.all([refunding, adopting]))[0]).toEqual(["begun"]);
  expect(failuresOf(fixture)).toEqual([]);
  expect(await settlementsOf(fixture, fixture.merchantId)).toMatchObject([
    { id, amount: 4n * UNIT },
    { id: next, amount: 3n * UNIT },
  ]);
});

test("a refund that is adopted with less than its amount and a payment that is booked meanwhile do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const paid = await fixture.pay(await fundBuyer(chain), 500n);
  const sent = await fixture.create(200n);
  await fixture.verify(await fixture.attempt(sent, await fundBuyer(chain)));
  await fixture.relay();
  const refundId = await requestRefund(fixture, paid, 3n * UNIT);
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  await insertLatePayout(fixture, { id: refundId, amount: 1n * UNIT });
  const { booking, adopting } = await fixture.db.transaction().execute(async (db) => {
    await sql`select from merchant_balance for update`.execute(db);
    const booking = fixture.watch();
    await waitForLocks(fixture, 1);
    const adopting = fixture.relay();
    await waitForLocks(fixture, 2);
    return { booking, adopting };
  });
  await Promise.all([booking, adopting]);
  expect(failuresOf(fixture)).toEqual([]);
  expect((await fixture.status(sent)).state).toBe("succeeded");
  expect(await fixture.db.selectFrom("refund").selectAll().orderBy("number").execute()).toMatchObject([
    { id: refundId, amount: 1n * UNIT, state: "paying" },
    { amount: 2n * UNIT, state: "due" },
  ]);
});

test("a payment that is added to an accumulating settlement and a refund that begins meanwhile do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const paid = await fixture.pay(await fundBuyer(chain), 500n);
  // Each addition wakes the queue of settlements, because the minimum is reached.
  await accumulatePayouts(fixture, { ms: 600_000, minimum: 1n });
  const first = await fixture.pay(await fundBuyer(chain), 100n);
  const added = await fixture.create(200n);
  await fixture.verify(await fixture.attempt(added, await fundBuyer(chain)));
  await fixture.relay();
  const refundId = await requestRefund(fixture, paid, 1n * UNIT);
  const { refunding, booking } = await fixture.db.transaction().execute(async (db) => {
    await sql`select from merchant_balance for update`.execute(db);
    const refunding = fixture.refund(refundId);
    await waitForLocks(fixture, 1);
    const booking = fixture.watch();
    await waitForLocks(fixture, 2);
    return { refunding, booking };
  });
  expect((await Promise.all([refunding, booking]))[0]).toEqual(["begun"]);
  expect(await fixture.settlementOf(added)).toEqual(await fixture.settlementOf(first));
  expect(await settlementsOf(fixture, fixture.merchantId)).toMatchObject([
    { amount: 4n * UNIT, state: "due" },
    { amount: 3n * UNIT, state: "accumulating" },
  ]);
});

test("the withdrawal of a refund and a hold of its merchant's payouts at the same time do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { accountId, merchantId, mode, deps } = fixture;
  const refundId = await requestRefund(fixture, await fixture.pay(await fundBuyer(chain), 500n), 1n * UNIT);
  const { withdrawing, holding } = await fixture.db.transaction().execute(async (db) => {
    await sql`select from named_lock where name = 'audit chain' for update`.execute(db);
    const withdrawing = withdrawRefund(deps, { actor: testActor, refundId });
    await waitForLocks(fixture, 1);
    const holding = holdPayouts(deps, { actor: testActor, accountId, merchantId, mode, hold: true });
    await waitForLocks(fixture, 2);
    return { withdrawing, holding };
  });
  expect(await Promise.all([withdrawing, holding])).toMatchObject([{ ok: true }, { ok: true }]);
});

test("the withdrawal of a refund and the booking of another refund of its payment do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { id: payout } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 300n));
  const paid = await fixture.pay(await fundBuyer(chain), 500n);
  expect(await fixture.settle(payout)).toEqual(["begun"]);
  const sentId = await requestRefund(fixture, paid, 1n * UNIT);
  expect(await fixture.refund(sentId)).toEqual(["begun"]);
  const refundId = await requestRefund(fixture, paid, 1n * UNIT);
  await fixture.verify(await fixture.attempt(await fixture.create(200n), await fundBuyer(chain)));
  await fixture.relay();
  const { booking, withdrawing } = await fixture.db.transaction().execute(async (db) => {
    await sql`select from settlement where id = ${payout} for update`.execute(db);
    // The payment is credited, which locks the queue of refunds, and the payout waits for its settlement.
    const booking = fixture.watch();
    await waitForLocks(fixture, 1);
    const withdrawing = withdrawRefund(fixture.deps, { actor: testActor, refundId });
    await waitForLocks(fixture, 2);
    return { booking, withdrawing };
  });
  expect((await Promise.all([withdrawing, booking]))[0]).toMatchObject({ ok: true });
  expect(await fixture.db.selectFrom("refund").select(["id", "state"]).orderBy("number").execute()).toEqual([
    { id: sentId, state: "paid" },
    { id: refundId, state: "withdrawn" },
  ]);
});

test("two bookings that both create an accumulating payout and a refund that begins meanwhile do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { db, deps, merchantId } = fixture;
  const paid = await fixture.pay(await fundBuyer(chain), 500n);
  expect(await fixture.settle((await fixture.settlementOf(paid)).id)).toEqual(["begun"]);
  await work(fixture);
  await accumulatePayouts(fixture, { ms: 600_000 });
  const refundId = await requestRefund(fixture, paid, 1n * UNIT);
  const credits = await Promise.all(
    [200n, 300n].map(async (cents) => {
      const payment = { id: await fixture.create(cents), merchant_id: merchantId, mode: "live" as const };
      return { payment, asset: chain.asset, amount: cents * 10_000n };
    }),
  );
  const release = Promise.withResolvers<void>();
  const { holding, later } = await db.transaction().execute(async (first) => {
    await accrue(deps, first, credits.slice(0, 1));
    const holding = db.transaction().execute(async (held) => {
      await sql`lock table settlement in share mode`.execute(held);
      await release.promise;
    });
    await waitForLocks(fixture, 1);
    const later = db.transaction().execute((second) => accrue(deps, second, credits.slice(1)));
    await waitForLocks(fixture, 2);
    return { holding, later };
  });
  // The later booking has found no payout, waited for the balance, and cannot write one yet.
  await waitForLocks(fixture, 1);
  const refunding = fixture.refund(refundId);
  await waitForLocks(fixture, 2);
  release.resolve();
  expect((await Promise.all([refunding, later, holding]))[0]).toEqual(["begun"]);
  expect(await settlementsOf(fixture, merchantId)).toMatchObject([
    { number: 1, state: "paid" },
    { number: 2, state: "accumulating", amount: 4n * UNIT },
  ]);
  const balance = await db.selectFrom("merchant_balance").select("next_settlement").execute();
  expect(balance).toEqual([{ next_settlement: 3 }]);
});

test("the retry of a payment with a refund and the booking of another payment do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const paymentId = await fixture.pay(await fundBuyer(chain), 500n);
  await requestRefund(fixture, paymentId, 1n * UNIT);
  const added = await fixture.create(200n);
  await fixture.verify(await fixture.attempt(added, await fundBuyer(chain)));
  await fixture.relay();
  const { retrying, booking } = await fixture.db.transaction().execute(async (db) => {
    await sql`select from payout_queue where kind = 'settlement' for update`.execute(db);
    const retrying = retryPayment(fixture.deps, { actor: testActor, paymentId });
    await waitForLocks(fixture, 1);
    const booking = fixture.watch();
    await waitForLocks(fixture, 2);
    return { retrying, booking };
  });
  const [retried] = await Promise.all([retrying, booking]);
  expect(retried).toMatchObject({ due: { settlements: 1, refunds: 1 } });
  expect((await fixture.status(added)).state).toBe("succeeded");
});

test("a refund that is adopted with more than its amount and the booking of another refund of its payment do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const paid = await fixture.pay(await fundBuyer(chain), 500n);
  const added = await fixture.create(200n);
  await fixture.verify(await fixture.attempt(added, await fundBuyer(chain)));
  const request = () => requestRefund(fixture, paid, 1n * UNIT);
  const [sentId, raisedId] = [await request(), await request()];
  expect(await fixture.refund(sentId)).toEqual(["begun"]);
  await fixture.relay();
  expect(await fixture.refund(raisedId)).toEqual(["begun"]);
  await insertLatePayout(fixture, { id: raisedId, amount: 4n * UNIT });
  const withdrawnId = await requestRefund(fixture, paid, 3n * UNIT);
  const { booking, adopting } = await fixture.db.transaction().execute(async (db) => {
    await sql`select from refund where id = ${sentId} for update`.execute(db);
    // The payment is credited, which locks the balance, and the refund that was sent waits for its row.
    const booking = fixture.watch();
    await waitForLocks(fixture, 1);
    const adopting = fixture.relay();
    await waitForLocks(fixture, 2);
    return { booking, adopting };
  });
  await Promise.all([booking, adopting]);
  expect(failuresOf(fixture)).toEqual([]);
  expect((await fixture.status(added)).state).toBe("succeeded");
  const refunds = fixture.db.selectFrom("refund").select(["id", "state", "amount"]).orderBy("number");
  expect(await refunds.execute()).toEqual([
    { id: sentId, state: "paid", amount: 1n * UNIT },
    { id: raisedId, state: "paying", amount: 4n * UNIT },
    { id: withdrawnId, state: "withdrawn", amount: 3n * UNIT },
  ]);
});

test("the adoption of a payout that was booked as an exception and the booking of a payment do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { deps, merchantId } = fixture;
  const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 300n));
  expect(await fixture.settle(id)).toEqual(["begun"]);
  await insertLatePayout(fixture, { id, amount: 2n * UNIT });
  const late = await fixture.db.selectFrom("observation").selectAll().where("transfer_id", "is", null).execute();
  const exceptions = late.flatMap((movement) => unmatchedGroup(fixture.evm, movement) ?? []);
  await insertGroups(fixture.db, exceptions, deps.now());
  const [credited, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { adopting, booking } = await fixture.db.transaction().execute(async (db) => {
    await sql`select from settlement where id = ${id} for update`.execute(db);
    const adopting = fixture.relay();
    await waitForLocks(fixture, 1);
    const own = await openSharing(fixture);
    const booking = own.transaction().execute(async (db) => {
      await creditMerchants(db, [{ merchantId, asset: chain.asset, amount: UNIT, settlements: 0 }]);
      credited.resolve();
      await released.promise;
      await waitForLocks(fixture, 1);
      const entries = [
        { account: "treasury", asset: chain.asset, amount: UNIT },
        { account: `payable:${merchantId}`, asset: chain.asset, amount: -UNIT },
      ];
      await insertGroups(db, [{ kind: "payment", subject: "trf_other", entries }], deps.now());
    });
    await credited.promise;
    return { adopting, booking };
  });
  released.resolve();
  await Promise.all([adopting, booking]);
  expect(failuresOf(fixture)).toEqual([]);
  expect(await listExceptions(deps, 10)).toEqual([]);
});
