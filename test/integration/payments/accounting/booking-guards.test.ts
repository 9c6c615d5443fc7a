import { expect, test } from "vitest";
import type { ConfirmedTransfer } from "../../../../db/queries/confirmable-transfers.ts";
import { correctLedger } from "../../../../payments/accounting/corrections.ts";
import { assignException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { createBookingHandlers } from "../../../../payments/lifecycle/book-transfers.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const { db, deps } = fixture;
const countGroups = async () => (await db.selectFrom("ledger_group").select("id").execute()).length;

/** A transfer of a settlement or a refund, as the watcher reports it once it is confirmed. */
const makeConfirmed = (facts: Pick<ConfirmedTransfer, "purpose"> & Partial<ConfirmedTransfer>): ConfirmedTransfer => ({
  ...{ id: `trf_${facts.purpose}`, payment_id: null, settlement_id: null, refund_id: null, chain: chain.id },
  ...{ asset: chain.asset, receiver: fixture.destination, amount: 1_000_000n, block_number: 1, block_id: "0xb" },
  ...{ tx_hash: "0xt", log_index: 0, payer: "0xp", authorization_nonce: null, observed_amount: 1_000_000n },
  ...{ token: "0xk", recorded_late: false, observed_at: deps.now(), ...facts },
});

test("the ledger refuses to book a confirmed transfer for a payout or a refund that has not begun", async () => {
  const paymentId = await fixture.pay(await fundBuyer(chain));
  const { id: settlement_id } = await fixture.settlementOf(paymentId);
  const { refundId: refund_id } = unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode: "live" }));
  const before = await countGroups();
  const handlers = createBookingHandlers(deps);
  for (const one of [
    makeConfirmed({ purpose: "settlement", settlement_id }),
    makeConfirmed({ purpose: "refund", refund_id }),
  ]) {
    const booking = db.transaction().execute((tx) => handlers.confirmed(tx, [one]));
    await expect(booking, one.purpose).rejects.toThrow("in state paying");
  }
  expect(await countGroups()).toBe(before);
  expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "due", paid_at: null });
});

test("an exception cannot be assigned to a test payment, because its money is real", async () => {
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 7n);
  await fixture.watch();
  const testing = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl, mode: "test" });
  const paymentId = await testing.create();
  const [exception] = await listExceptions(deps, 10);
  expect(await assignException(deps, { actor: testActor, id: exception?.id ?? 0, paymentId })).toMatchObject({
    ok: false,
    code: "payment_not_found",
  });
  expect(await listExceptions(deps, 10)).toMatchObject([{ id: exception?.id, amount: 7n }]);
});

test("a correction cannot be booked on a payable, in-transit or lane account", async () => {
  const before = await countGroups();
  for (const account of [`payable:${fixture.merchantId}`, "in_transit", "lane:"])
    for (const sides of [
      { debit: account, credit: "losses" },
      { debit: "losses", credit: account },
    ]) {
      const correction = { reference: "ticket-1", asset: chain.asset, amount: 5n, note: "a mistake", ...sides };
      expect(await correctLedger(deps, { ...correction, actor: testActor })).toMatchObject({
        ok: false,
        code: "invalid_state",
      });
    }
  expect(await countGroups()).toBe(before);
});
