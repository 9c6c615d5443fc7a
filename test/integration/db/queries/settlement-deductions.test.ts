import { expect, test } from "vitest";
import { insertRefund } from "../../../../db/queries/refunds.ts";
import { insertDeductions } from "../../../../db/queries/settlement-deductions.ts";
import { linkSettlements } from "../../../../db/queries/settlement-links.ts";
import { newId } from "../../../../payments/ids.ts";
import { insertMerchant, insertPaymentRow, insertSettlementRow, someAsset } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db } = await openTestDb(2);

test("a refund that deducts from a payment again takes what its share lacks from the other payments of the settlement", async () => {
  const merchant = await insertMerchant(db);
  const settlementId = await insertSettlementRow(db, merchant, { amount: 6n });
  const paymentId = await insertPaymentRow(db, merchant, { dueAt: null });
  await linkSettlements(db, [{ paymentId, settlementId }]);
  await db.updateTable("payment").set({ paid_amount: 3n }).where("settlement_id", "=", settlementId).execute();
  const refundId = newId("rfnd", new Date());
  await insertRefund(db, {
    ...{ id: refundId, payment_id: paymentId, number: 1, exception_id: null, merchant_id: merchant.merchantId },
    ...{ asset: someAsset, amount: 4n, owed_asset: null, owed_amount: null, receiver: "0xb1", state: "marked" },
    ...{ held_reason: null, created_at: new Date(), due_at: null },
  });
  const deduct = (amount: bigint) => insertDeductions(db, { refundId, settlementId, paymentId, amount });
  await deduct(2n);
  await deduct(2n);
  const rows = await db.selectFrom("settlement_deduction").select(["payment_id", "amount"]).execute();
  expect(rows.find(({ payment_id }) => payment_id === paymentId)?.amount).toBe(3n);
  expect(rows.reduce((sum, { amount }) => sum + amount, 0n)).toBe(4n);
});
