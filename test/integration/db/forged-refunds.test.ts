import { sql } from "kysely";
import { beforeAll, expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import type { Db } from "../../../db/tables.ts";
import { newId } from "../../../payments/ids.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { roleUrl } from "../../support/database-roles.ts";
import { insertMerchant, insertPaymentRow, someAsset, someChain } from "../../support/insert-rows.ts";
import { openTestDb } from "../../support/open-test-db.ts";

// What a thief who has the api's database login can make of refunds.

const { db, url } = await openTestDb(4);
const asApi = openDb(await roleUrl(url, "api"), { max: 1, applicationName: "thief" });
addCleanup(() => asApi.destroy());

const payer = `0x${"0a".repeat(20)}`;
let merchant: Awaited<ReturnType<typeof insertMerchant>>;
beforeAll(async () => {
  merchant = await insertMerchant(db);
});

/** Inserts a payment of 1000 minor units that has succeeded. */
async function insertPaid({ mode, direct = false }: { mode: "live" | "test"; direct?: boolean }): Promise<string> {
  const id = await insertPaymentRow(db, merchant, { mode });
  const option = newId("opt", new Date());
  await sql`insert into payment_option (id, payment_id, account, chain, asset, token, payer, receiver, amount,
      authorization_nonce, valid_before, direct, created_at)
    values (${option}, ${id}, ${`${someChain}:${payer}`}, ${someChain}, ${someAsset}, '0x', ${payer}, '0x', 1000, ${id}, 1,
      ${direct}, now())`.execute(db);
  await sql`update payment set state = 'processing' where id = ${id}`.execute(db);
  await sql`update payment set state = 'succeeded', option_id = ${option}, asset = ${someAsset}, tx_id = '0x01', direct = ${direct},
      paid_asset = ${someAsset}, paid_amount = 1000, owed_asset = ${someAsset}, owed_amount = 1000
    where id = ${id}`.execute(db);
  return id;
}

const insertRefund = (id: string, paymentId: string, state: string, by: Db = asApi) =>
  sql`insert into public.refund (id, payment_id, number, amount, state, created_at, updated_at, due_at)
    values (${id}, ${paymentId}, 1, 1000, ${state}, now(), now(), case ${state} when 'due' then now() end)`.execute(by);

test("temporary tables of the api's login decide nothing about a refund", async () => {
  const paymentId = await insertPaid({ mode: "live" });
  const victim = await insertMerchant(db);
  await asApi.transaction().execute(async (own) => {
    await sql`create temp table payment on commit drop as select * from public.payment where id = ${paymentId}`.execute(
      own,
    );
    await sql`create temp table payment_option on commit drop as
      select * from public.payment_option where payment_id = ${paymentId}`.execute(own);
    await sql`update pg_temp.payment set account_id = ${victim.accountId}, merchant_id = ${victim.merchantId},
      owed_asset = 'other', owed_amount = 1`.execute(own);
    await sql`update pg_temp.payment_option set payer = '0xthief'`.execute(own);
    await insertRefund("rfnd_shadowed", paymentId, "due", own);
  });
  const refund = await db.selectFrom("refund").selectAll().where("id", "=", "rfnd_shadowed").executeTakeFirstOrThrow();
  expect(refund).toMatchObject({
    account_id: merchant.accountId,
    merchant_id: merchant.merchantId,
    receiver: payer,
    owed_asset: someAsset,
    owed_amount: 1000n,
  });
});

test.each([
  { of: "a live payment", payment: { mode: "live" }, right: "due", wrong: ["marked", "held", "paying", "paid"] },
  { of: "a payment of test mode", payment: { mode: "test" }, right: "marked", wrong: ["due"] },
  { of: "a direct payment", payment: { mode: "live", direct: true }, right: "marked", wrong: ["due"] },
] as const)(
  "the api's login inserts no refund of $of in another state than $right",
  async ({ payment, right, wrong }) => {
    const paymentId = await insertPaid(payment);
    const id = newId("rfnd", new Date());
    for (const state of wrong)
      await expect(insertRefund(id, paymentId, state)).rejects.toThrow(`a refund of ${paymentId} begins as ${right}`);
    expect(await db.selectFrom("webhook_event").select("id").where("refund_id", "=", id).execute()).toEqual([]);
    await insertRefund(id, paymentId, right);
  },
);
