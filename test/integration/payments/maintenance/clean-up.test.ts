import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { cleanUp } from "../../../../payments/maintenance/clean-up.ts";
import { insertMerchant, insertPaymentRow } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db } = await openTestDb();
const DAY_MS = 24 * 60 * 60_000;
const merchant = await insertMerchant(db);
const paymentId = await insertPaymentRow(db, merchant, { dueAt: null });
await sql`insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, created_at)
  values ('whe_1', ${merchant.accountId}, 'live', 'https://shop.example', true, 'k', '', now())`.execute(db);
await sql`insert into webhook_delivery (event_id, endpoint_id, priority, at, due_at)
  select id, 'whe_1', 1, now(), now() from webhook_event where payment_id = ${paymentId}`.execute(db);

beforeEach(() => db.deleteFrom("webhook_attempt").execute());

/** Inserts requests to a webhook endpoint that were sent 31 days ago. */
async function insertOldRequests(count: number): Promise<void> {
  await sql`insert into webhook_attempt (event_id, endpoint_id, at, duration_ms, outcome)
    select event_id, endpoint_id, ${new Date(Date.now() - 31 * DAY_MS)}, 1, '200'
    from webhook_delivery, generate_series(1, ${count}::integer)`.execute(db);
}

test("requests to webhook endpoints are deleted after 30 days, also when more than 5,000 of them are due in five seconds", async () => {
  await insertOldRequests(12_000);
  const deps = { db, now: () => new Date() };
  expect((await cleanUp(deps)).sent).toBeGreaterThan(5_000);
});

test("buyers' data that cannot be deleted does not keep requests to webhook endpoints and quotes from being deleted", async () => {
  await insertOldRequests(10);
  await sql`insert into collected_data (id, payment_id, account, requester, key_id, ciphertext, created_at, delete_at, keep_until)
    values ('data_1', ${paymentId}, 'eip155:1:0x1', '', 'k', '', now(), now(), now())`.execute(db);
  for (const statement of [
    "create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$",
    "create trigger refuse before delete on collected_data for each row execute function refuse()",
  ])
    await sql.raw(statement).execute(db);
  await expect(cleanUp({ db, now: () => new Date(Date.now() + DAY_MS) })).rejects.toThrow("refused");
  expect(await db.selectFrom("webhook_attempt").select("id").execute()).toEqual([]);
});
