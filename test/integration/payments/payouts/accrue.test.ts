import { expect, test } from "vitest";
import { newId } from "../../../../payments/ids.ts";
import { accrue } from "../../../../payments/payouts/accrue.ts";
import { insertMerchant, insertPaymentRow, someAsset, someChain } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

test("one booking adds what came in the merchant's asset to one accumulating payout, and what came in others to another", async () => {
  const { db } = await openTestDb(2);
  const merchant = await insertMerchant(db);
  const { merchantId } = merchant;
  const at = new Date();
  await db
    .insertInto("settlement_destination")
    .values({
      id: newId("crypto", at),
      merchant_id: merchantId,
      asset: someAsset,
      destination: `${someChain}:0x1`,
      accumulation_ms: 60_000,
      accumulation_amount: 100n,
      minimum: null,
      created_at: at,
      updated_at: at,
    })
    .execute();
  const credit = async (amount: bigint, converted: boolean) => {
    const id = await insertPaymentRow(db, merchant);
    return { payment: { id, merchant_id: merchantId, mode: "live" as const }, asset: someAsset, amount, converted };
  };
  const book = async (...amounts: readonly [own: bigint, converted: bigint]) => {
    const credits = [await credit(amounts[1], true), await credit(amounts[0], false)];
    const { due, settlementOf } = await db.transaction().execute((trx) => accrue({ now: () => at }, trx, credits));
    return { due, settlements: credits.map(({ payment }) => settlementOf.get(payment.id)) };
  };
  const read = () =>
    db.selectFrom("settlement").select(["id", "number", "amount", "converted"]).orderBy("number").execute();

  const first = await book(10n, 3n);
  // The numbers follow the order of the credits, so that a restored database gives the same ones.
  const [converted, own] = await read();
  expect(converted).toMatchObject({ number: 1, amount: 3n, converted: true });
  expect(own).toMatchObject({ number: 2, amount: 10n, converted: false });
  expect(first).toEqual({ due: [], settlements: [converted?.id, own?.id] });

  const second = await book(95n, 4n);
  expect(await read()).toMatchObject([{ amount: 7n }, { amount: 105n }]);
  expect(second).toEqual({ due: [own?.id], settlements: [converted?.id, own?.id] });
  const [balance, ...others] = await db.selectFrom("merchant_balance").select(["amount", "next_settlement"]).execute();
  expect([balance, others]).toEqual([{ amount: 112n, next_settlement: 3 }, []]);
});
