import { type RawBuilder, sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import { listUnreportedChanges } from "../../../db/queries/destination-reports.ts";
import { giveUpDeliveries, listDueEvents } from "../../../db/queries/webhook-deliveries.ts";
import type { Db } from "../../../db/tables.ts";
import { newId } from "../../../payments/ids.ts";
import { allEntries } from "../../support/audited-changes.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { roleUrl } from "../../support/database-roles.ts";
import { insertMerchant, insertPaymentRow, someAsset, someChain } from "../../support/insert-rows.ts";
import { openTestDb } from "../../support/open-test-db.ts";

// What a thief who has a database login can do to redirect a merchant's payments unnoticed.

const { db, url } = await openTestDb(4);
const openAs = async (role: "api" | "worker" | "admin") => {
  const thief = openDb(await roleUrl(url, role), { max: 1, applicationName: "thief" });
  addCleanup(() => thief.destroy());
  return thief;
};
const [asApi, asWorker, asAdmin] = [await openAs("api"), await openAs("worker"), await openAs("admin")];

/** Registers an endpoint as a merchant does over the API. */
async function insertOwnEndpoint(): Promise<string> {
  const id = newId("whe", new Date());
  await sql`insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, created_at)
    values (${id}, ${merchant.accountId}, 'live', 'https://own.example.test/', false, 'k', 's', now())`.execute(db);
  return id;
}
const setEndpoint = (id: string, change: RawBuilder<unknown>, by: Db = asApi) =>
  sql`update webhook_endpoint set ${change} where id = ${id}`.execute(by);
const dueAt = async (endpointId: string) =>
  (await listDueEvents(asWorker, { endpointId, now: new Date(Date.now() + 60_000), without: [], limit: 10 })).map(
    ({ type }) => type,
  );
const notices = ["destination.change_requested", "destination.applied"];

const disabled = sql`disabled_at = '2020-01-01', disabled_reason = 'requested'`;
const enabled = sql`disabled_at = null, disabled_reason = null`;

const stranger = `${someChain}:0x${"bad0".repeat(10)}`;
let merchant: Awaited<ReturnType<typeof insertMerchant>>;
let ids: { destination: string; change: string; endpoint: string };

beforeEach(async () => {
  merchant = await insertMerchant(db);
  ids = {
    destination: newId("crypto", new Date()),
    change: newId("dchg", new Date()),
    endpoint: newId("whe", new Date()),
  };
  await sql`insert into settlement_destination (id, merchant_id, asset, destination, direct, created_at, updated_at)
    values (${ids.destination}, ${merchant.merchantId}, ${someAsset}, ${`${someChain}:0x1`}, true, now(), now())`.execute(
    db,
  );
  await sql`insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, created_at)
    values (${ids.endpoint}, ${merchant.accountId}, 'live', 'https://shop.example.test/', true, 'k', 's', now())`.execute(
    db,
  );
});

const request = (by: Db) =>
  sql`insert into destination_change
    (id, merchant_id, destination_id, asset, before, after, state, requester_kind, requester_id, created_at, applies_at)
  values (${ids.change}, ${merchant.merchantId}, ${ids.destination}, ${someAsset}, ${`${someChain}:0x1`}, ${stranger}, 'requested',
    'key', 'key_1', '2200-01-01', now())`.execute(by);
const apply = (by: Db, id = ids.change) =>
  sql`update destination_change set state = 'applied', applied_at = '2200-01-01' where id = ${id}`.execute(by);
const readChange = () =>
  db.selectFrom("destination_change").selectAll().where("id", "=", ids.change).executeTakeFirstOrThrow();
const entriesOfDestination = async () => (await allEntries(db)).filter(({ subject }) => subject === ids.destination);

test("a change that the api's login forges is in the audit log, due at the merchant's endpoint and reported to the signer", async () => {
  await request(asApi);
  await apply(asApi);
  const report = sql`update destination_change set reported_at = now() where id = ${ids.change}`;
  for (const by of [asApi, asAdmin]) await expect(report.execute(by)).rejects.toMatchObject({ code: "42501" });
  expect(await readChange()).toMatchObject({ state: "applied", reported_at: null });
  expect(await entriesOfDestination()).toMatchObject([
    {
      action: "destination.change_applied",
      actor_kind: "login",
      actor_id: new URL(await roleUrl(url, "api")).username,
    },
  ]);
  const { rows } = await sql`
    select v.type, d.state, d.due_at <= now() as due from webhook_delivery d join webhook_event v on v.id = d.event_id
    where d.endpoint_id = ${ids.endpoint} order by v.sequence`.execute(db);
  expect(rows).toEqual([
    { type: "destination.change_requested", state: "pending", due: true },
    { type: "destination.applied", state: "pending", due: true },
  ]);
});

test.each([
  ["disabled", disabled, enabled],
  ["disabled as one that fails", sql`disabled_at = '2020-01-01', disabled_reason = 'failing'`, enabled],
  ["narrowed to other events", sql`event_types = '{payment.created}'`, sql`event_types = null`],
  ["narrowed to another merchant", sql`merchant_ids = '{mrch_1}'`, sql`merchant_ids = null`],
])(
  "a merchant's own endpoint receives the notices of a forged change, although it was %s for that moment",
  async (_what, off, on) => {
    const endpoint = await insertOwnEndpoint();
    await asApi.transaction().execute(async (thief) => {
      await setEndpoint(endpoint, off, thief);
      await request(thief);
      await apply(thief);
      await setEndpoint(endpoint, on, thief);
    });
    expect(await dueAt(endpoint)).toEqual(notices);
  },
);

test("a worker sends the notices to an endpoint that stays disabled, for a day, and gives the others up", async () => {
  const endpoint = await insertOwnEndpoint();
  const paymentId = await insertPaymentRow(db, merchant, { dueAt: null });
  await sql`insert into webhook_delivery (event_id, endpoint_id, priority, at, due_at)
    select id, ${endpoint}, priority, now(), now() from webhook_event where payment_id = ${paymentId}
    on conflict do nothing`.execute(db);
  await request(asApi);
  await setEndpoint(endpoint, disabled);
  await apply(asApi);
  expect(await giveUpDeliveries(asWorker, endpoint, 10)).toBe(1);
  expect(await dueAt(endpoint)).toEqual(notices);
  await sql`update webhook_former_filter set until = now() - interval '25 hours' where endpoint_id = ${endpoint}`.execute(
    db,
  );
  expect(await dueAt(endpoint)).toEqual([]);
  expect(await giveUpDeliveries(asWorker, endpoint, 10)).toBe(2);
});

test("an endpoint that was disabled or narrowed over a day ago, or never asked for notices, receives none", async () => {
  const [off, narrow, never] = [await insertOwnEndpoint(), newId("whe", new Date()), newId("whe", new Date())];
  for (const id of [narrow, never])
    await sql`insert into webhook_endpoint (id, account_id, mode, url, event_types, by_operator, key_id, secret, created_at)
      values (${id}, ${merchant.accountId}, 'live', ${`https://${id}.example.test/`},
        ${id === never ? ["payment.created"] : null}, false, 'k', 's', now())`.execute(db);
  await setEndpoint(off, disabled);
  await setEndpoint(narrow, sql`event_types = '{payment.created}'`);
  await sql`update webhook_former_filter set until = until - interval '25 hours'`.execute(db);
  await setEndpoint(never, disabled);
  await request(asApi);
  expect([await dueAt(off), await dueAt(narrow), await dueAt(never)]).toEqual([[], [], []]);
});

test("an endpoint that was deleted stays deleted", async () => {
  const endpoint = await insertOwnEndpoint();
  await setEndpoint(endpoint, sql`deleted_at = now()`);
  for (const again of [sql`deleted_at = null`, sql`deleted_at = '2200-01-01'`])
    await expect(setEndpoint(endpoint, again)).rejects.toThrow("a row of webhook_endpoint stays deleted");
});

test("the signer hears of an account that a forged change has applied, whatever other change waits or has applied since", async () => {
  const own = `${someChain}:0x1`;
  const heard = async () =>
    (await listUnreportedChanges(db, 100))
      .filter(({ merchant_id }) => merchant_id === merchant.merchantId)
      .map(({ applied, requested, past }) => ({ applied, requested, past }));
  await request(asApi);
  await apply(asApi);
  const back = newId("dchg", new Date());
  await sql`insert into destination_change
    (id, merchant_id, destination_id, asset, before, after, state, requester_kind, requester_id, created_at, applies_at)
    values (${back}, ${merchant.merchantId}, ${ids.destination}, ${someAsset}, ${stranger}, ${own}, 'requested', 'key', 'key_1', now(),
      '2200-01-01')`.execute(asApi);
  const both = { applied: stranger, requested: own, past: null };
  expect(await heard()).toEqual([both, both]);
  await apply(asApi, back);
  expect(await heard()).toEqual([
    { applied: own, requested: null, past: null },
    { applied: own, requested: null, past: stranger },
  ]);
});

test("only workers end or postpone a delivery, and the api's login changes no endpoint of an operator", async () => {
  await request(asApi);
  const where = sql`where endpoint_id = ${ids.endpoint}`;
  for (const by of [asApi, asAdmin]) {
    for (const forged of [
      sql`update webhook_delivery set state = 'delivered', due_at = null ${where}`,
      sql`update webhook_delivery set state = 'given_up', due_at = null ${where}`,
      sql`update webhook_delivery set due_at = '2200-01-01' ${where}`,
    ])
      await expect(forged.execute(by)).rejects.toThrow("only a worker ends or postpones a delivery");
    await sql`update webhook_delivery set state = 'pending', attempts_made = 0, due_at = now() ${where}`.execute(by);
  }
  await sql`update webhook_delivery set due_at = now() + interval '1 hour' ${where}`.execute(asWorker);
  for (const change of [
    sql`url = 'https://thief.example.test/'`,
    sql`disabled_at = now(), disabled_reason = 'requested'`,
  ]) {
    const forged = sql`update webhook_endpoint set ${change} where id = ${ids.endpoint}`;
    await expect(forged.execute(asApi)).rejects.toThrow(`${ids.endpoint} belongs to an operator`);
  }
  for (const by of [asAdmin, asWorker])
    await sql`update webhook_endpoint set disabled_at = null where id = ${ids.endpoint}`.execute(by);
});

test("a worker's login requests and decides no change of a destination", async () => {
  await expect(request(asWorker)).rejects.toMatchObject({ code: "42501" });
  await request(asApi);
  const decide = sql`update destination_change set state = 'approved', decider_kind = 'key', decider_id = 'key_1', decided_at = now()
    where id = ${ids.change}`;
  await expect(decide.execute(asWorker)).rejects.toMatchObject({ code: "42501" });
  await apply(asWorker);
  expect(await entriesOfDestination()).toMatchObject([{ actor_kind: "login" }]);
});

test.each([
  ["rejected", sql`rejection = 'decided', decider_kind = 'key', decider_id = 'key_1', decided_at = now()`],
  ["applied", sql`applied_at = now()`],
])("a change that is %s is reported to the signer once more", async (state, rest) => {
  await request(asApi);
  await sql`update destination_change set reported_at = now() where id = ${ids.change}`.execute(asWorker);
  await sql`update destination_change set state = ${state}, ${rest} where id = ${ids.change}`.execute(asApi);
  expect(await readChange()).toMatchObject({ state, reported_at: null });
});

test("the signer hears of an account whose change was rejected before a report", async () => {
  await request(asApi);
  await sql`update destination_change set state = 'rejected', rejection = 'withdrawn', decider_kind = 'key', decider_id = 'key_1',
    decided_at = now() where id = ${ids.change}`.execute(asApi);
  expect(await listUnreportedChanges(db, 100)).toContainEqual(
    expect.objectContaining({ applied: `${someChain}:0x1`, requested: null, past: stranger }),
  );
});
