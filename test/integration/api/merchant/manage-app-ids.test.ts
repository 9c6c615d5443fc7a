import { expect, test } from "vitest";
import { makeKey, makeMerchant, makePayment, startApi } from "../start-api.ts";

const api = await startApi();
const shop = await makeMerchant(api);
const headers = { "api-key": shop.key };
const create = async () => ((await api.post("/v1/app-ids", headers, {})).body["appId"] as { id: string }).id;

test("a wallet calls the gateway with a new app id until it is revoked", async () => {
  const id = await create();
  const path = `/v1/gateway/payment/${await makePayment(api, shop)}`;
  const wallet = { "app-id": id, "client-id": "a wallet" };
  expect((await api.get(path, wallet)).status).toBe(200);
  for (let count = 0; count < 2; count += 1) {
    const { status, body } = await api.post(`/v1/app-ids/${id}/revoke`, headers, {});
    expect([status, body["appId"]]).toMatchObject([200, { id, revokedAt: expect.any(String) }]);
  }
  expect((await api.get(path, wallet)).body).toMatchObject({ code: "invalid_app_id" });
});

test("app ids are listed in pages, the newest first, those of the mode and account only", async () => {
  const made = [await create(), await create(), await create()];
  const first = await api.get("/v1/app-ids?limit=2", headers);
  const second = await api.get(`/v1/app-ids?limit=2&cursor=${first.body["nextCursor"]}`, headers);
  const ids = [first, second].flatMap(({ body }) => (body["data"] as { id: string }[]).map(({ id }) => id));
  expect(ids.slice(0, 3)).toEqual(made.toReversed());
  const stranger = { "api-key": (await makeMerchant(api)).key };
  const { key } = await makeKey(api, { accountId: shop.accountId, mode: "live", scopes: ["keys", "gateway"] });
  for (const other of [stranger, { "api-key": key }]) {
    expect(JSON.stringify((await api.get("/v1/app-ids", other)).body)).not.toContain(made[0]);
    const { status, body } = await api.post(`/v1/app-ids/${made[0]}/revoke`, other, {});
    expect([status, body["code"]]).toEqual([404, "app_id_not_found"]);
  }
});

test("app ids and keys begin with random digits, and not with their time: they are credentials", async () => {
  const { key } = await makeKey(api, { accountId: shop.accountId, mode: "test", scopes: ["gateway"] });
  for (const digits of [await create(), key.replace("svc_test_", "")]) {
    expect(digits).toMatch(/^([0-9a-f]{32}){1,2}$/);
    expect(Math.abs(Number.parseInt(digits.slice(0, 8), 16) * 1000 - Date.now())).toBeGreaterThan(60_000);
  }
});

test.each([
  ["without the scope gateway", { scopes: ["keys"] as const }, "scope gateway"],
  ["for some addresses", { scopes: ["keys", "gateway"] as const, allowedCidrs: ["127.0.0.0/8"] }, "allowedCidrs"],
  ["that expires", { scopes: ["keys", "gateway"] as const, expiresAt: new Date(Date.now() + 3_600_000) }, "expiresAt"],
])("a key %s creates no app id, because that could do more than the key", async (_of, limits, named) => {
  const { key } = await makeKey(api, { accountId: shop.accountId, mode: "test", ...limits });
  const { status, body } = await api.post("/v1/app-ids", { "api-key": key }, {});
  expect([status, body]).toMatchObject([403, { code: "forbidden", message: expect.stringContaining(named) }]);
});

test("a repeated creation with one Idempotency-Key creates one app id", async () => {
  const once = { ...headers, "idempotency-key": "one app" };
  const [first, second] = [await api.post("/v1/app-ids", once, {}), await api.post("/v1/app-ids", once, {})];
  expect(second.body).toEqual(first.body);
});
