import { sql } from "kysely";
import { expect, test } from "vitest";
import { insertSettlements } from "../../../../db/queries/settlements.ts";
import { writeSettledEvents } from "../../../../payments/webhooks/settled-events.ts";
import { insertMerchant, insertPaymentRow, someAsset } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db } = await openTestDb();

/** Inserts a settlement of another merchant that was paid some seconds ago, with succeeded payments whose events are pending. */
async function insertPaid(id: string, { count, seconds }: { count: number; seconds: number }): Promise<void> {
  const merchant = await insertMerchant(db);
  const at = new Date(Date.now() - 1_000 * seconds);
  const row = { id, merchantId: merchant.merchantId, mode: "live" as const, asset: someAsset, number: 1 };
  await insertSettlements(db, [{ ...row, amount: 1n, dueAt: null }], at);
  const first = await insertPaymentRow(db, merchant, { dueAt: null });
  await db.transaction().execute(async (own) => {
    await sql`set local session_replication_role = replica`.execute(own);
    await sql`insert into payment select copy.* from payment p, generate_series(1, ${count}::integer) as n,
      jsonb_populate_record(p, jsonb_build_object('id', 'pay_' || md5(${id} || n), 'settlement_id', ${id}::text)) as copy
      where p.id = ${first}`.execute(own);
    await sql`insert into webhook_fanout (settlement_id, at) values (${id}, ${at})`.execute(own);
  });
}

test("a merchant's payment.settled does not wait for those of another merchant's payout of thousands of payments", async () => {
  await insertPaid("stl_large", { count: 2_000, seconds: 60 });
  await insertPaid("stl_small", { count: 1, seconds: 1 });
  const countSettled = async (settlementId: string) => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::integer as count from webhook_event v join payment p on p.id = v.payment_id
      where v.type = 'payment.settled' and p.settlement_id = ${settlementId}`.execute(db);
    return rows[0]?.count;
  };
  await writeSettledEvents({ db });
  expect([await countSettled("stl_small"), await countSettled("stl_large")]).toEqual([1, 250]);
  while ((await writeSettledEvents({ db })) > 0);
  expect([await countSettled("stl_small"), await countSettled("stl_large")]).toEqual([1, 2_000]);
  expect(await db.selectFrom("webhook_fanout").selectAll().execute()).toEqual([]);
});
