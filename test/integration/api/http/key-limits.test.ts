import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { waitFor } from "../../../support/wait-for.ts";
import { type Api, makeKey, makeMerchant, makePayment, startApi, type TestMerchant } from "../start-api.ts";

const api = await startApi({ trustedProxies: ["127.0.0.1"] });
const shop = await makeMerchant(api);
const id = await makePayment(api, shop);
const path = `/v1/payments/${id}/status`;

type Limits = Partial<Parameters<typeof makeKey>[1]>;
const newKey = (limits: Limits = {}) =>
  makeKey(api, { accountId: shop.accountId, mode: "test", scopes: ["payments:read"], ...limits });
const headersOf = (key: string, more: Record<string, string> = {}) => ({
  "api-key": key,
  "merchant-id": shop.merchantId,
  ...more,
});
const ask = async (key: string, more: Record<string, string> = {}) => {
  const { status, body } = await api.get(path, headersOf(key, more));
  expect(JSON.stringify(body)).not.toContain(key);
  return { status, code: body["code"], message: body["message"] };
};
const from = (address: string) => ({ "x-forwarded-for": address });
const setKey = async (keyId: string, set: { expires_at?: Date; last_used_at?: Date }) => {
  await api.db.updateTable("api_key").set(set).where("id", "=", keyId).execute();
  api.credentials.forget();
};

test("a key without the scope of an operation is refused, and the message names the scope", async () => {
  const { key } = await newKey();
  expect(await ask(key)).toMatchObject({ status: 200 });
  const body = { amount: { unit: "iso4217/USD", value: "500" } };
  expect(await api.post("/v1/payments", headersOf(key), body)).toMatchObject({
    status: 403,
    body: { code: "forbidden", message: "the API key lacks the scope payments:write" },
  });
});

test("an expired key is refused with 401", async () => {
  const { id: keyId, key } = await newKey({ expiresAt: new Date(Date.now() + 60_000) });
  expect(await ask(key)).toMatchObject({ status: 200 });
  await setKey(keyId, { expires_at: new Date(Date.now() - 1) });
  expect(await ask(key)).toMatchObject({
    status: 401,
    code: "invalid_api_key",
    message: expect.stringContaining("expired at"),
  });
});

describe("a key that is restricted to addresses", () => {
  test("works from these, whichever proxy and address family reports them", async () => {
    const { key } = await newKey({ allowedCidrs: ["192.0.2.0/24", "2001:db8::/32"] });
    for (const address of ["192.0.2.7", "::ffff:192.0.2.7", "::ffff:c000:207", "2001:db8::1"])
      expect(await ask(key, from(address)), address).toMatchObject({ status: 200 });
  });

  test("is refused from others with 403, also when the caller claims an address before the proxy's", async () => {
    const { key } = await newKey({ allowedCidrs: ["192.0.2.0/24"] });
    const refused = { status: 403, code: "forbidden", message: "the API key may not be used from this address" };
    for (const address of ["198.51.100.7", "2001:db8::1", "192.0.2.7, 198.51.100.7", "::ffff:198.51.100.7"])
      expect(await ask(key, from(address)), address).toEqual(refused);
    expect(await ask(key)).toEqual(refused);
  });

  test("does not trust a forwarded address without a trusted proxy", async () => {
    const direct = await startApi({ databaseUrl: api.databaseUrl });
    const { key } = await newKey({ allowedCidrs: ["192.0.2.0/24"] });
    expect(await direct.get(path, headersOf(key, from("192.0.2.7")))).toMatchObject({ status: 403 });
  });
});

describe("the last use of a key", () => {
  const readUse = async (of: Api, keyId: string) =>
    of.db
      .selectFrom("api_key")
      .select(["last_used_at", "last_used_address"])
      .where("id", "=", keyId)
      .executeTakeFirstOrThrow();

  test("is stored with its address, once a minute, and outside of requests", async () => {
    const { id: keyId, key } = await newKey();
    for (const address of ["192.0.2.1", "192.0.2.2"]) await ask(key, from(address));
    expect(await readUse(api, keyId)).toMatchObject({ last_used_at: null });
    await api.keyUses.store();
    const first = await readUse(api, keyId);
    expect(first).toEqual({ last_used_at: expect.any(Date), last_used_address: "192.0.2.1" });
    await ask(key, from("192.0.2.3"));
    await api.keyUses.store();
    expect(await readUse(api, keyId)).toEqual(first);
    await setKey(keyId, { last_used_at: new Date(Date.now() - 60_000) });
    await ask(key, from("192.0.2.4"));
    await api.keyUses.store();
    expect(await readUse(api, keyId)).toMatchObject({ last_used_address: "192.0.2.4" });
  });

  test("is stored once when two processes note it in the same minute", async () => {
    const twin = await startApi({ databaseUrl: api.databaseUrl, trustedProxies: ["127.0.0.1"] });
    const { id: keyId, key } = await newKey();
    await ask(key, from("192.0.2.1"));
    await twin.get(path, headersOf(key, from("192.0.2.2")));
    await api.keyUses.store();
    await twin.keyUses.store();
    expect(await readUse(api, keyId)).toMatchObject({ last_used_address: "192.0.2.1" });
  });

  test("is stored in the order in which revocations lock keys, so that neither waits for the other one", async () => {
    const made = await Promise.all([1, 2].map(() => newKey()));
    const [lower = "", higher = ""] = made.map((one) => one.id).toSorted();
    // Rows are read in the order in which they were written.
    await setKey(lower, { last_used_at: new Date(0) });
    for (const keyId of [higher, lower]) api.keyUses.note({ keyId, lastUsedAt: null, address: "192.0.2.1" });
    const { storing } = await api.db.transaction().execute(async (db) => {
      const lock = (keyId: string) => db.selectFrom("api_key").select("id").where("id", "=", keyId).forNoKeyUpdate();
      await lock(lower).execute();
      const storing = api.keyUses.store();
      // The process has two connections, and the store waits with the other one.
      const isWaiting = async () => (await sql`select from pg_locks where not granted`.execute(db)).rows.length > 0;
      await waitFor(isWaiting, { within: 3_000 });
      expect(await lock(higher).skipLocked().execute()).toEqual([{ id: higher }]);
      return { storing };
    });
    await storing;
    for (const keyId of [lower, higher])
      expect(await readUse(api, keyId)).toMatchObject({ last_used_address: "192.0.2.1" });
  });

  test("is not noted for a caller who is refused at their address", async () => {
    const { id: keyId, key } = await newKey({ allowedCidrs: ["192.0.2.0/24"] });
    await ask(key, from("198.51.100.7"));
    await api.keyUses.store();
    expect(await readUse(api, keyId)).toMatchObject({ last_used_at: null });
  });
});

test("authentication is one statement, which concurrent requests share", async () => {
  const { key } = await newKey({ scopes: ["refunds"], allowedCidrs: ["127.0.0.1"] });
  const count = async (requests: number) => {
    const before = api.statements.count;
    await Promise.all(Array.from({ length: requests }, () => ask(key, from("127.0.0.1"))));
    return api.statements.count - before;
  };
  // The process itself reads the moves of payments once a second.
  const counts: number[] = [];
  for (let pass = 0; pass < 5; pass += 1) {
    api.credentials.forget();
    counts.push(await count(1));
  }
  expect(Math.min(...counts)).toBe(1);
  api.credentials.forget();
  expect(await count(40)).toBeLessThan(40);
});

test("a live key reads no test payment, and a test key no live payment", async () => {
  const live: TestMerchant = await makeMerchant(api, { mode: "live" });
  const { key } = await makeKey(api, { accountId: shop.accountId, mode: "live", scopes: ["payments:read"] });
  expect(await ask(key)).toMatchObject({ status: 404, code: "payment_not_found" });
  const listed = await api.get("/v1/payments", { "api-key": key });
  expect(listed).toMatchObject({ status: 200, body: { data: [] } });
  expect(await ask(live.key)).toMatchObject({ status: 404 });
});
