import { expect, test } from "vitest";
import { createEndpoint } from "../../../../payments/webhooks/change-endpoints.ts";
import {
  insertLaneRow,
  insertMerchant,
  insertPaymentRow,
  insertSettlementRow,
  insertTransferRow,
} from "../../../support/insert-rows.ts";
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

/** Registers an endpoint with a secret in its URL. Returns its id. */
async function addEndpoint(name: string): Promise<string> {
  const settings = { accountId: merchant.accountId, mode: "live" as const };
  const url = `https://user:s3cret@${name}.example:8443/hooks/s3cret?token=s3cret`;
  const deps = { db, now, ...testEncryption(), validateUrl: () => undefined };
  return unwrap(await createEndpoint(deps, { actor: testActor, ...settings, url })).endpoint.id;
}

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

test("overdue accumulating payouts, webhooks that wait, failing endpoints and chains without a watcher are listed", async () => {
  const settlement = await insertSettlementRow(db, merchant, { asset: "eip155:1/erc20:0x1" });
  const overdue = { state: "accumulating", closed_at: null, due_at: ago(20) } as const;
  await db.updateTable("settlement").set(overdue).where("id", "=", settlement).execute();
  const [waits, failing] = [await addEndpoint("waits"), await addEndpoint("failing")];
  const disabled = { disabled_at: ago(12), disabled_reason: "failing" } as const;
  await db.updateTable("webhook_endpoint").set(disabled).where("id", "=", failing).execute();
  await insertPaymentRow(db, merchant);
  await db
    .updateTable("webhook_delivery")
    .set({ due_at: ago(15), last_outcome: "503" })
    .where("endpoint_id", "=", waits)
    .execute();
  const cursor = { number: 1, block_id: "0x1", final_number: 1 };
  for (const [chain, lease_until] of [
    ["eip155:97", null],
    ["eip155:98", ago(-1)],
  ] as const)
    await db
      .insertInto("chain_cursor")
      .values({ ...cursor, chain, lease_until, owner: null, reached_head_at: ago(30), due_at: null })
      .execute();
  await db
    .insertInto("chain_cursor")
    .values({ ...cursor, chain: "eip155:99", lease_until: null, owner: null, reached_head_at: ago(0), due_at: null })
    .execute();
  // As Solana's cursor, which no block comes with.
  const unread = { ...cursor, chain: "eip155:96", lease_until: null, owner: null, reached_head_at: null, due_at: null };
  await db
    .insertInto("chain_cursor")
    .values({ ...unread, created_at: ago(30) })
    .execute();
  const rows = (await pageOf("unfinished?minutes=10")).split("<tr>");
  const rowOf = (text: string) => rows.find((row) => row.includes(text)) ?? "";
  expect(rowOf(settlement)).toContain("accumulating");
  expect(rowOf(waits)).toMatch(/wait past their retry.*503/s);
  expect(rowOf(failing)).toContain("endpoint is disabled");
  expect(rowOf("eip155:96")).toContain("has no watcher");
  expect(rowOf("eip155:97")).toContain("has no watcher");
  expect(rowOf("eip155:98")).toContain("watcher is behind the head");
  expect(rowOf("eip155:99")).toBe("");
  expect(await pageOf("unfinished?minutes=60")).not.toContain(settlement);
  // Deliveries of a deleted endpoint have ended within a day.
  const deleted = { deleted_at: ago(25 * 60) };
  await db.updateTable("webhook_endpoint").set(deleted).where("id", "=", waits).execute();
  expect(await pageOf("unfinished?minutes=10")).not.toContain("wait past their retry");
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
  const endpoint = await addEndpoint("shop");
  const page = await pageOf("endpoints");
  expect([page.includes(endpoint), page.includes("https://shop.example:8443<"), page.includes("s3cret")]).toEqual([
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
