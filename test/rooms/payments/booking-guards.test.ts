import { expect, test } from "vitest";
import type { ConfirmedTransfer } from "../../../db/transfers.ts";
import { createBooks } from "../../../payments/book.ts";
import { correctLedger } from "../../../payments/corrections.ts";
import { assignException, listExceptions } from "../../../payments/exceptions.ts";
import { refundPayment } from "../../../payments/refund.ts";
import { fundBuyer, sendUsdc, startChain } from "../../support/chain.ts";
import { good, makeTill } from "../../support/till.ts";

const chain = await startChain();
const till = await makeTill(chain);
const { db, deps } = till;
const countGroups = async () => (await db.selectFrom("ledger_group").select("id").execute()).length;

/** What the watcher has confirmed, for a settlement or a refund. */
const confirmed = (of: Pick<ConfirmedTransfer, "purpose"> & Partial<ConfirmedTransfer>): ConfirmedTransfer => ({
  ...{ id: `trf_${of.purpose}`, payment_id: null, settlement_id: null, refund_id: null, chain: chain.id },
  ...{ asset: chain.asset, receiver: till.destination, amount: 1_000_000n, block_number: 1, block_hash: "0xb" },
  ...{ tx_hash: "0xt", log_index: 0, ...of },
});

test("a payout or a refund that has not begun is not booked as arrived, whatever was confirmed", async () => {
  const paymentId = await till.pay(await fundBuyer(chain));
  const { id: settlement_id } = await till.settlementOf(paymentId);
  const { refundId: refund_id } = good(await refundPayment(deps, { paymentId, mode: "live" }));
  const before = await countGroups();
  const books = createBooks(deps);
  for (const one of [
    confirmed({ purpose: "settlement", settlement_id }),
    confirmed({ purpose: "refund", refund_id }),
  ]) {
    const booking = db.transaction().execute((tx) => books.confirmed(tx, [one]));
    await expect(booking, one.purpose).rejects.toThrow("in state paying");
  }
  expect(await countGroups()).toBe(before);
  expect(await till.settlementOf(paymentId)).toMatchObject({ state: "due", paid_at: null });
});

test("an exception is not given to a test payment: its money is real", async () => {
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 7n);
  await till.watch();
  const testing = await makeTill(chain, { databaseUrl: till.databaseUrl, mode: "test" });
  const paymentId = await testing.create();
  const [exception] = await listExceptions(deps, 10);
  expect(await assignException(deps, { id: exception?.id ?? 0, paymentId })).toMatchObject({
    ok: false,
    code: "payment_not_found",
  });
  expect(await listExceptions(deps, 10)).toMatchObject([{ id: exception?.id, amount: 7n }]);
});

test("a correction is not booked on what a merchant is owed, nor on what is in transit", async () => {
  const before = await countGroups();
  for (const account of [`payable:${till.merchantId}`, "in_transit", "lane:"])
    for (const sides of [
      { debit: account, credit: "losses" },
      { debit: "losses", credit: account },
    ]) {
      const correction = { reference: "ticket-1", asset: chain.asset, amount: 5n, note: "a mistake", ...sides };
      expect(await correctLedger(deps, correction)).toMatchObject({ ok: false, code: "invalid_state" });
    }
  expect(await countGroups()).toBe(before);
});
