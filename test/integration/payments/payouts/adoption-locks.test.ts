import { sql } from "kysely";
import { expect, test } from "vitest";
import { lockException } from "../../../../db/queries/exceptions.ts";
import { insertGroups } from "../../../../db/queries/ledger-groups.ts";
import type { UnmatchedObservation } from "../../../../db/queries/unmatched-movements.ts";
import { unmatchedGroup } from "../../../../payments/accounting/ledger-groups.ts";
import { bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { createBookingHandlers } from "../../../../payments/lifecycle/book-transfers.ts";
import { retryPayment } from "../../../../payments/maintenance/operator-actions.ts";
import { fundBuyer, startChain, type TestChain } from "../../../support/evm-chain.ts";
import { failuresOf, insertLatePayout, openSharing, requestRefund, waitForLocks } from "../../../support/lock-races.ts";
import { type MerchantFixture, makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { settlementsOf, work } from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";

const UNIT = 1_000_000n;

/** Begins the payout of a payment of 3 USDC, and books a movement of `amount` with its nonce as an exception. */
async function makeLatePayout(chain: TestChain, fixture: MerchantFixture, amount: bigint) {
  const { db, deps, evm } = fixture;
  const paymentId = await fixture.pay(await fundBuyer(chain), 300n);
  const { id } = await fixture.settlementOf(paymentId);
  expect(await fixture.settle(id)).toEqual(["begun"]);
  await insertLatePayout(fixture, { id, amount });
  const late = await db.selectFrom("observation").selectAll().where("transfer_id", "is", null).execute();
  const booked = late.flatMap((movement) => unmatchedGroup(evm, movement) ?? []);
  await insertGroups(db, booked, deps.now());
  return { id, paymentId, late };
}

test("the adoption of a payout and the booking of another lost one as an exception do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { db, deps } = fixture;
  const { late } = await makeLatePayout(chain, fixture, 3n * UNIT);
  const lost = late.map((movement): UnmatchedObservation => ({ ...movement, tx_hash: "0x03", log_index: 1 }));
  const at = deps.now();
  const blocked = { blocked_by: "unrecorded_payout", blocked_at: at, due_at: at };
  await db.updateTable("payout_queue").set(blocked).where("kind", "=", "settlement").execute();
  const { adopting, booking } = await db.transaction().execute(async (held) => {
    await sql`select from payout_queue where kind = 'settlement' for update`.execute(held);
    const adopting = fixture.relay();
    await waitForLocks(fixture, 1);
    const own = await openSharing(fixture);
    const booking = own.transaction().execute((db) => createBookingHandlers(deps).unmatched(db, lost));
    await waitForLocks(fixture, 2);
    return { adopting, booking };
  });
  await Promise.all([adopting, booking]);
  expect(failuresOf(fixture)).toEqual([]);
  expect(await listExceptions(deps, 10)).toMatchObject([{ txHash: "0x03", amount: -3n * UNIT }]);
});

test("the adoption of a payout that sent more than is owed and an operator who books it as a loss do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { db, deps } = fixture;
  const { id: settlementId } = await makeLatePayout(chain, fixture, 4n * UNIT);
  const [{ id } = { id: 0 }] = await listExceptions(deps, 10);
  const { adopting, resolving } = await db.transaction().execute(async (held) => {
    await lockException(held, id);
    const running = await db.transaction().execute(async (other) => {
      await sql`select from settlement where id = ${settlementId} for update`.execute(other);
      const adopting = fixture.relay();
      await waitForLocks(fixture, 1);
      const own = await openSharing(fixture);
      const as = { actor: testActor, id, as: "losses" as const, note: "it is lost" };
      const resolving = bookException({ ...deps, db: own }, as);
      await waitForLocks(fixture, 2);
      return { adopting, resolving };
    });
    await waitForLocks(fixture, 2);
    return running;
  });
  const [resolved] = await Promise.all([resolving, adopting]);
  expect(failuresOf(fixture)).toEqual([]);
  expect(resolved).toMatchObject({ ok: false, message: `there is no open exception ${id}` });
  expect(await listExceptions(deps, 10)).toMatchObject([{ kind: "overpaid", amount: -1n * UNIT }]);
});

test("the adoption of a payout that sent less than is owed and a refund that is requested meanwhile do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { db, merchantId } = fixture;
  // The merchant has a queue of refunds.
  const refunded = await fixture.pay(await fundBuyer(chain), 500n);
  expect(await fixture.refund(await requestRefund(fixture, refunded, 1n * UNIT))).toEqual(["begun"]);
  await fixture.relay();
  const { id, paymentId } = await makeLatePayout(chain, fixture, 2n * UNIT);
  const { adopting, requesting } = await db.transaction().execute(async (held) => {
    await sql`select from payout_queue where kind = 'refund' for update`.execute(held);
    const adopting = fixture.relay();
    await waitForLocks(fixture, 1);
    const requesting = requestRefund(fixture, paymentId, 1n * UNIT);
    await waitForLocks(fixture, 2);
    return { adopting, requesting };
  });
  await Promise.all([adopting, requesting]);
  expect(failuresOf(fixture)).toEqual([]);
  const settlements = await settlementsOf(fixture, merchantId);
  expect(settlements.map(({ amount }) => amount)).toEqual([4n * UNIT, 2n * UNIT, 1n * UNIT]);
  expect(settlements[1]?.id).toBe(id);
  expect(await fixture.settlementOf(paymentId)).toMatchObject({ id: settlements[2]?.id });
});

test("the retry of a payment and the adoption of a refund that draws on its settlement do not deadlock", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { db, deps } = fixture;
  const refunded = await fixture.pay(await fundBuyer(chain), 500n);
  expect(await fixture.settle((await fixture.settlementOf(refunded)).id)).toEqual(["begun"]);
  await work(fixture);
  const paymentId = await fixture.pay(await fundBuyer(chain), 700n);
  const refundId = await requestRefund(fixture, refunded, 1n * UNIT);
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  await insertLatePayout(fixture, { id: refundId, amount: 4n * UNIT });
  await requestRefund(fixture, paymentId, 1n * UNIT);
  const { adopting, retrying } = await db.transaction().execute(async (held) => {
    await sql`select from merchant_balance for update`.execute(held);
    const adopting = fixture.relay();
    await waitForLocks(fixture, 1);
    const retrying = retryPayment(deps, { actor: testActor, paymentId });
    await waitForLocks(fixture, 2);
    return { adopting, retrying };
  });
  const [retried] = await Promise.all([retrying, adopting]);
  expect(failuresOf(fixture)).toEqual([]);
  expect(retried).toMatchObject({ due: { settlements: 1, refunds: 1 } });
  expect(await fixture.settlementOf(paymentId)).toMatchObject({ amount: 3n * UNIT, state: "due" });
});
