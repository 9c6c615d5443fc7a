import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import { insertAuditEntries } from "../../../db/queries/audit-entries.ts";
import type { Db } from "../../../db/tables.ts";
import { newId } from "../../../payments/ids.ts";
import { verifyAudit } from "../../../payments/maintenance/verify-audit.ts";
import { createApiKey, revokeApiKey, rotateApiKey } from "../../../payments/merchants/api-keys.ts";
import { createAppId, revokeApp } from "../../../payments/merchants/app-ids.ts";
import { allEntries } from "../../support/audited-changes.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { roleUrl } from "../../support/database-roles.ts";
import { insertMerchant } from "../../support/insert-rows.ts";
import { unwrap } from "../../support/merchant-fixture.ts";
import { openTestDb } from "../../support/open-test-db.ts";
import { testActor } from "../../support/test-actor.ts";

// What a thief who has the api's database login can leave behind, so that they have access once the login has ended.

const { db, url } = await openTestDb(4);
const apiUrl = await roleUrl(url, "api");
const asApi = openDb(apiUrl, { max: 1, applicationName: "thief" });
addCleanup(() => asApi.destroy());
const deps = { db, now: () => new Date() };
const byOperator = { actor: testActor, caller: undefined };
const someHash = () => randomBytes(32);
const publicKey = "ab".repeat(32);

let merchant: Awaited<ReturnType<typeof insertMerchant>>;
let key: string;
beforeEach(async () => {
  merchant = await insertMerchant(db);
  const made = await createApiKey(deps, {
    ...byOperator,
    accountId: merchant.accountId,
    mode: "live",
    scopes: ["payments:read"],
  });
  key = unwrap(made).apiKey.id;
});

const entriesOf = async (subject: string) =>
  (await allEntries(db))
    .filter((entry) => entry.subject === subject)
    .map(({ action, actor_kind, actor_id }) => [action, actor_kind, actor_id]);
const byLogin = (action: string) => [action, "login", new URL(apiUrl).username];

const insertKey = (id: string, by: Db = asApi) =>
  sql`
  insert into api_key (id, account_id, mode, hash, hint, scopes, created_at)
  values (${id}, ${merchant.accountId}, 'live', ${someHash()}, 'hint', '{keys}', '2025-01-01')`.execute(by);
const setFormer = (until: string) =>
  sql`update api_key set previous_hash = ${someHash()}, previous_until = ${until}::text::timestamptz where id = ${key}`.execute(
    asApi,
  );

test("each credential that the api's login writes is in the audit log", async () => {
  const [forged, app, endpoint] = [newId("key", new Date()), randomBytes(16).toString("hex"), newId("whe", new Date())];
  await insertKey(forged);
  await sql`insert into app_id (id, account_id, mode, created_at) values (${app}, ${merchant.accountId}, 'live', now())`.execute(
    asApi,
  );
  await sql`insert into approval_key (merchant_id, public_key, registrar_kind, registrar_id, created_at, applies_at)
    values (${merchant.merchantId}, ${publicKey}, 'operator', 'ana', now(), now())`.execute(asApi);
  await sql`insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, created_at)
    values (${endpoint}, ${merchant.accountId}, 'live', 'https://thief.example.test/', false, 'k', 's', now())`.execute(
    asApi,
  );
  await sql`update webhook_endpoint set url = 'https://thief.example.test/2' where id = ${endpoint}`.execute(asApi);
  await setFormer(new Date(Date.now() + 60_000).toISOString());
  await sql`update api_key set hash = ${someHash()} where id = ${forged}`.execute(asApi);
  expect(await entriesOf(forged)).toEqual([byLogin("api_key.rotated"), byLogin("api_key.created")]);
  expect(await entriesOf(app)).toEqual([byLogin("app_id.created")]);
  expect(await entriesOf(merchant.merchantId)).toEqual([byLogin("approval_key.registered")]);
  expect(await entriesOf(endpoint)).toEqual([byLogin("webhook_endpoint.updated"), byLogin("webhook_endpoint.created")]);
  expect(await entriesOf(key)).toEqual([byLogin("api_key.rotated"), ["api_key.created", "operator", "test"]]);
  expect((await verifyAudit(deps, { exported: [] })).findings).toEqual([]);
});

test.each([
  ["updated", sql`event_types = '{payment.created}'`],
  ["updated", sql`merchant_ids = '{mrch_1}'`],
  ["updated", sql`payload = 'thin'`],
  ["updated", sql`disabled_at = now(), disabled_reason = 'requested'`],
  ["disabled", sql`disabled_at = now(), disabled_reason = 'failing'`],
  ["deleted", sql`deleted_at = now()`],
  ["secret_rotated", sql`secret = 'thief'`],
  ["secret_rotated", sql`previous_key_id = 'k', previous_secret = 'thief', previous_until = now()`],
])("what the api's login changes of an endpoint is in the audit log: %s, %#", async (action, change) => {
  const endpoint = newId("whe", new Date());
  await sql`insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, created_at)
    values (${endpoint}, ${merchant.accountId}, 'live', 'https://shop.example.test/', false, 'k', 's', now())`.execute(
    db,
  );
  await asApi.transaction().execute(async (thief) => {
    await sql`update webhook_endpoint set ${change} where id = ${endpoint}`.execute(thief);
    if (action === "updated")
      await sql`update webhook_endpoint set event_types = null, merchant_ids = null, payload = 'full', disabled_at = null,
        disabled_reason = null where id = ${endpoint}`.execute(thief);
  });
  expect((await entriesOf(endpoint))[0]).toEqual(byLogin(`webhook_endpoint.${action}`));
});

test("an entry about another change, or one that was rolled back, does not stand for the entry of a key", async () => {
  const forged = newId("key", new Date());
  const claim = (own: Db, action: string) =>
    insertAuditEntries(own, [{ actor: testActor, action, subject: forged, before: null, after: null, at: new Date() }]);
  await claim(asApi, "api_key.created");
  await asApi.transaction().execute(async (own) => {
    await claim(own, "merchant.updated");
    await sql`savepoint s`.execute(own);
    await claim(own, "api_key.created");
    await sql`rollback to savepoint s`.execute(own);
    await insertKey(forged, own);
  });
  expect(await entriesOf(forged)).toEqual([
    byLogin("api_key.created"),
    ["merchant.updated", "operator", "test"],
    ["api_key.created", "operator", "test"],
  ]);
});

test("a change through the service has one entry, also inside a savepoint", async () => {
  const owner = { accountId: merchant.accountId, mode: "live" as const };
  await db.transaction().execute(async (own) => {
    await sql`savepoint s`.execute(own);
    unwrap(await rotateApiKey({ ...deps, db: own }, { ...byOperator, id: key }));
    await sql`release savepoint s`.execute(own);
  });
  const app = unwrap(await createAppId(deps, { actor: testActor, ...owner }));
  expect(await entriesOf(key)).toEqual([
    ["api_key.rotated", "operator", "test"],
    ["api_key.created", "operator", "test"],
  ]);
  expect(await entriesOf(app.id)).toEqual([["app_id.created", "operator", "test"]]);
});

test("the api's login lets a former secret work for 30 days at most", async () => {
  await expect(setFormer("2200-01-01")).rejects.toThrow(`the former secret of ${key} would work for over 30 days`);
  await expect(setFormer("infinity")).rejects.toThrow("over 30 days");
  const previousUntil = new Date(Date.now() + 30 * 24 * 3_600_000);
  expect(unwrap(await rotateApiKey(deps, { ...byOperator, id: key, previousUntil })).apiKey.previousUntil).toEqual(
    previousUntil,
  );
});

test("the api's login reinstates no key and no app id that was revoked", async () => {
  const app = unwrap(await createAppId(deps, { actor: testActor, accountId: merchant.accountId, mode: "live" }));
  unwrap(await revokeApp(deps, { actor: testActor, id: app.id }));
  unwrap(await revokeApiKey(deps, { ...byOperator, id: key, withCreated: false }));
  await sql`insert into approval_key (merchant_id, public_key, registrar_kind, registrar_id, created_at, applies_at, revoked_at)
    values (${merchant.merchantId}, ${publicKey}, 'operator', 'ana', now(), now(), now())`.execute(asApi);
  for (const [table, column, id] of [
    ["api_key", "id", key],
    ["app_id", "id", app.id],
    ["approval_key", "merchant_id", merchant.merchantId],
  ] as const)
    for (const at of [null, "2200-01-01"])
      await expect(
        sql`update ${sql.table(table)} set revoked_at = ${at} where ${sql.ref(column)} = ${id}`.execute(asApi),
      ).rejects.toThrow(`a row of ${table} stays revoked`);
});
