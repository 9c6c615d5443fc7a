import { sql } from "kysely";
import { expect, test } from "vitest";
import { insertPayment } from "../../../../db/queries/payments.ts";
import { newId } from "../../../../payments/ids.ts";
import { insertMerchant } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { waitFor } from "../../../support/wait-for.ts";

const { db } = await openTestDb();

type Merchant = Awaited<ReturnType<typeof insertMerchant>>;
const paymentOf = ({ accountId, merchantId }: Merchant) => {
  const created_at = new Date();
  const whose = { account_id: accountId, merchant_id: merchantId, mode: "live" as const, reference_id: null };
  const amount = { unit: "iso4217/USD", value: 100n, checkout: null, description: null, metadata: null };
  return { id: newId("pay", new Date()), ...whose, ...amount, created_at, expires_at: created_at, due_at: null };
};
const claimOf = (key: string) => ({
  ...{ operation: "createPayment", key, digest: Buffer.alloc(32), status: 201 },
  response_body: newId("pay", new Date()),
});

test("payments are inserted in one order, so that merchants who use the same idempotency key cannot deadlock", async () => {
  const merchants = [await insertMerchant(db), await insertMerchant(db)];
  const [first, second] = merchants.sort((a, b) => (a.accountId < b.accountId ? -1 : 1)) as [Merchant, Merchant];
  const claim = claimOf("order-1");
  const both = await db.transaction().execute(async (other) => {
    await insertPayment(other, paymentOf(first), claim);
    const inserts = Promise.all(
      [second, first].map((merchant) => insertPayment(db, paymentOf(merchant), claimOf(claim.key))),
    );
    await waitFor(
      async () => {
        const { rows } = await sql`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
        return rows.length === 1;
      },
      { within: 10_000 },
    );
    // The waiting statement has not claimed the second merchant's key, so this one need not wait for it.
    await sql`set local lock_timeout = '200ms'`.execute(other);
    expect(await insertPayment(other, paymentOf(second), claimOf(claim.key))).toBe(true);
    return { inserts };
  });
  expect(await both.inserts).toEqual([false, false]);
});
