import { expect, test } from "vitest";
import { createEndpoint } from "../../../../payments/webhooks/change-endpoints.ts";
import { insertLaneRow, insertMerchant, insertSettlementRow, insertTransferRow } from "../../../support/insert-rows.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { openConsole } from "../../../support/open-console.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { testActor } from "../../../support/test-actor.ts";
import { testEncryption } from "../../../support/test-deps.ts";

const { db, url: databaseUrl } = await openTestDb(4);
const now = () => new Date();
const { get } = await openConsole({ db, databaseUrl, deps: { now } });
const merchant = await insertMerchant(db);
const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000);
const pageOf = async (name: string) => (await get(`/console/${name}`)).body;

test("unfinished work is listed with its payment and its error from an age on, and finished work is not", async () => {
  const stuck = await insertTransferRow(db, merchant, {}, ago(5));
  await db.updateTable("transfer").set({ last_error: "no lane has gas" }).where("id", "=", stuck.id).execute();
  const ended = await insertTransferRow(db, merchant, {}, ago(90));
  await db.updateTable("transfer").set({ state: "confirmed" }).where("id", "=", ended.id).execute();
  const fresh = await insertTransferRow(db, merchant);
  const settlement = await insertSettlementRow(db, merchant);
  await db
    .updateTable("settlement")
    .set({ created_at: ago(70), closed_at: ago(70) })
    .where("id", "=", settlement)
    .execute();
  const page = await pageOf("unfinished");
  for (const part of [stuck.id, `href="/console/payments/${stuck.paymentId}"`, "no lane has gas", settlement])
    expect(page).toContain(part);
  for (const id of [ended.id, fresh.id]) expect(page).not.toContain(id);
  const old = await pageOf("unfinished?minutes=60");
  expect([old.includes(settlement), old.includes(stuck.id)]).toEqual([true, false]);
});

test("held merchants, blocked payouts and transfers on hold are listed", async () => {
  await db
    .updateTable("merchant")
    .set({ payouts_held_at: ago(3) })
    .where("id", "=", merchant.merchantId)
    .execute();
  const transfer = await insertTransferRow(db, merchant);
  await db
    .updateTable("transfer")
    .set({ hold_until: ago(-5) })
    .where("id", "=", transfer.id)
    .execute();
  const block = { blocked_by: "inventory_short", blocked_at: ago(2), due_at: ago(-2) };
  await db.updateTable("payout_queue").set(block).where("merchant_id", "=", merchant.merchantId).execute();
  const page = await pageOf("held");
  for (const part of [`href="/console/merchants/${merchant.merchantId}"`, transfer.id, "inventory_short"])
    expect(page).toContain(part);
});

test("lanes and webhook endpoints are listed; of an endpoint's URL only the host, because the rest may be a secret", async () => {
  const lane = await insertLaneRow(db);
  expect(await pageOf("lanes")).toContain(lane.address);
  const settings = {
    accountId: merchant.accountId,
    mode: "live" as const,
    url: "https://shop.example/hooks/s3cret?token=s3cret",
  };
  const deps = { db, now, ...testEncryption(), validateUrl: () => undefined };
  const { endpoint } = unwrap(await createEndpoint(deps, { actor: testActor, ...settings }));
  const page = await pageOf("endpoints");
  expect([page.includes(endpoint.id), page.includes("shop.example"), page.includes("s3cret")]).toEqual([
    true,
    true,
    false,
  ]);
});

test("a failed booking is listed with its error and can be retried", async () => {
  const [at, retry_at] = [ago(5), ago(-5)];
  const row = { chain: "eip155:31337", kind: "transfer" as const, subject: "0x1", error: "the amount is <b>odd</b>" };
  await db
    .insertInto("failed_booking")
    .values({ ...row, first_at: at, last_at: at, retry_at })
    .execute();
  const page = await pageOf("exceptions");
  expect(page).toContain("the amount is &lt;b&gt;odd&lt;/b&gt;");
  expect(page).toMatch(/href="\/console\/actions\/retry-booking\/\d+"/);
});
