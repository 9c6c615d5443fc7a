import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { operations } from "../../../../api/routes.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { scopes } from "../../../../payments/merchants/scopes.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeValidCalls, type ValidCall } from "../contract/valid-calls.ts";
import { makeKey, makeMerchant, makePayment, startApi } from "../start-api.ts";

const api = await startApi();
const shop = await makeMerchant(api);
const owner = { accountId: shop.accountId, mode: "test" } as const;
const named = { actor: testActor, name: "Second Shop", email: "second@example.test" };
const second = await createMerchant(api.deps, { ...owner, ...named });
const restricted = async (...ids: string[]) => (await makeKey(api, { ...owner, scopes, onlyMerchants: ids })).key;
const ofSecond = await restricted(second.id);
const calls = await makeValidCalls(api, shop);

const send = ({ method, path, headers, body }: ValidCall) =>
  api.ask(method, path, { headers, ...(body === undefined ? {} : { json: body }) });
/** Returns a call with another key and a fresh Idempotency-Key, if it had one. */
const withKey = (call: ValidCall, key: string): ValidCall => {
  const { "app-id": _app, "client-id": _client, ...headers } = call.headers;
  const fresh = headers["idempotency-key"] ? { "idempotency-key": randomUUID() } : {};
  return { ...call, headers: { ...headers, ...fresh, "api-key": key } };
};
const ids = /\b(pay|mrch|crypto|rfnd|key|dchg)_[0-9a-f]{32}\b/g;
/** Returns the same value with ids that do not exist. */
const withUnknownIds = <T>(value: T): T =>
  JSON.parse(JSON.stringify(value).replaceAll(ids, (_id, prefix) => `${prefix}_${"0".repeat(32)}`)) as T;

/** Calls that name no merchant: what a key of another merchant gets. */
const unnamed: Record<string, object> = {
  listPayments: { status: 200, body: { data: [], nextCursor: null, stats: { totalTransactions: 0 } } },
  listRefunds: { status: 200, body: { data: [], nextCursor: null } },
  listMerchants: { status: 200, body: { data: [{ id: second.id }], totalCount: 1 } },
  listBalances: { status: 200, body: { data: [], nextCursor: null } },
  getStatement: { status: 200, body: { data: [], nextCursor: null } },
  createMerchant: { status: 403, body: { code: "forbidden" } },
  createApiKey: { status: 403, body: { code: "forbidden", message: expect.stringContaining("merchantIds") } },
  listApiKeys: { status: 200, body: { data: [{ merchantIds: [second.id] }], nextCursor: null } },
  createAppId: { status: 403, body: { code: "forbidden" } },
  listAppIds: { status: 403, body: { code: "forbidden" } },
  revokeAppId: { status: 403, body: { code: "forbidden" } },
  createWebhookEndpoint: { status: 403, body: { code: "forbidden" } },
  listWebhookEndpoints: { status: 403, body: { code: "forbidden" } },
  getWebhookEndpoint: { status: 403, body: { code: "forbidden" } },
  updateWebhookEndpoint: { status: 403, body: { code: "forbidden" } },
  deleteWebhookEndpoint: { status: 403, body: { code: "forbidden" } },
  rotateWebhookSecret: { status: 403, body: { code: "forbidden" } },
  testWebhookEndpoint: { status: 403, body: { code: "forbidden" } },
  listWebhookDeliveries: { status: 403, body: { code: "forbidden" } },
  getWebhookDelivery: { status: 403, body: { code: "forbidden" } },
  replayWebhookEvent: { status: 403, body: { code: "forbidden" } },
  replayWebhookEvents: { status: 403, body: { code: "forbidden" } },
  listEvents: { status: 403, body: { code: "forbidden" } },
  getEvent: { status: 403, body: { code: "forbidden" } },
  listRequestLogs: { status: 403, body: { code: "forbidden" } },
};

describe("for a key that is restricted to another merchant", () => {
  test.each(operations.map(({ name }) => name).filter((name) => !(name in unnamed)))(
    "%s answers as if nothing that the call names existed",
    async (name) => {
      const make = calls[name];
      if (!make) throw new Error(`there is no valid call of ${name}`);
      const call = withKey(await make(), ofSecond);
      const answer = await send(call);
      expect(answer.status).toBe(404);
      const absent = await send(withUnknownIds(call));
      expect(withUnknownIds({ status: answer.status, body: answer.body })).toEqual({
        status: absent.status,
        body: absent.body,
      });
      // The call itself was valid.
      expect((await send(withKey(call, shop.key))).status).toBeLessThan(300);
    },
  );

  test.each(Object.entries(unnamed))("%s shows and changes nothing of other merchants", async (name, answer) => {
    await makePayment(api, shop);
    const call = await calls[name]?.();
    if (!call) throw new Error(`there is no valid call of ${name}`);
    expect(await send(withKey(call, ofSecond))).toMatchObject(answer);
  });
});

test("a key reaches each of its merchants, in lists with sums, page by page, and no other", async () => {
  const third = await createMerchant(api.deps, { ...owner, ...named });
  const mine = await makeMerchant(api);
  const both = (
    await makeKey(api, { accountId: mine.accountId, mode: "test", scopes, onlyMerchants: [mine.merchantId] })
  ).key;
  const other = await createMerchant(api.deps, { accountId: mine.accountId, mode: "test", ...named });
  const paid = [await makePayment(api, mine), await makePayment(api, mine), await makePayment(api, mine)];
  await api.db
    .updateTable("payment")
    .set({ merchant_id: other.id })
    .where("id", "=", paid[1] ?? "")
    .execute();
  const first = await api.get("/v1/payments?limit=1", { "api-key": both });
  const next = await api.get(`/v1/payments?limit=1&cursor=${first.body["nextCursor"]}`, { "api-key": both });
  const idsOf = ({ body }: typeof first) => (body["data"] as { paymentId: string }[]).map(({ paymentId }) => paymentId);
  expect([...idsOf(first), ...idsOf(next)]).toEqual([paid[2], paid[0]]);
  expect(next.body).toMatchObject({ nextCursor: null, stats: { totalTransactions: 2 } });
  for (const merchantId of [other.id, third.id, `mrch_${"0".repeat(32)}`])
    expect(await api.get(`/v1/payments?merchantId=${merchantId}`, { "api-key": both })).toMatchObject({
      status: 200,
      body: { data: [], nextCursor: null, stats: { totalTransactions: 0 } },
    });
});

test("merchants are listed page by page without those that the key does not reach", async () => {
  const { accountId, merchantId } = await makeMerchant(api);
  const more = [];
  for (let count = 0; count < 3; count += 1)
    more.push((await createMerchant(api.deps, { accountId, mode: "test", ...named })).id);
  const reached = [merchantId, more[1] ?? ""];
  const { key } = await makeKey(api, { accountId, mode: "test", scopes, onlyMerchants: reached });
  const first = await api.get("/v1/merchants?limit=1", { "api-key": key });
  const next = await api.get(`/v1/merchants?limit=1&cursor=${first.body["nextCursor"]}`, { "api-key": key });
  const idsOf = ({ body }: typeof first) => (body["data"] as { id: string }[]).map(({ id }) => id);
  expect([...idsOf(first), ...idsOf(next)]).toEqual(reached.toReversed());
  expect(next.body).toMatchObject({ totalCount: 2, nextCursor: null });
});

test("a key that is restricted to a merchant stays restricted when the merchant is deleted", async () => {
  const gone = await makeMerchant(api);
  const { key } = await makeKey(api, {
    accountId: gone.accountId,
    mode: "test",
    scopes,
    onlyMerchants: [gone.merchantId],
  });
  const paymentId = await makePayment(api, gone);
  const kept = await createMerchant(api.deps, { accountId: gone.accountId, mode: "test", ...named });
  await api.delete(`/v1/merchants/${gone.merchantId}`, gone.headers);
  const headers = { ...gone.headers, "api-key": key };
  expect(await api.get("/v1/merchants", headers)).toMatchObject({ status: 200, body: { data: [], totalCount: 0 } });
  expect(await api.get(`/v1/merchants/${kept.id}`, headers)).toMatchObject({ status: 404 });
  expect(await api.get(`/v1/payments/${paymentId}`, headers)).toMatchObject({ status: 200 });
  const body = { amount: { unit: "iso4217/USD", value: "500" } };
  expect(await api.post("/v1/payments", headers, body)).toMatchObject({ status: 404 });
});

describe("idempotency keys", () => {
  const body = { amount: { unit: "iso4217/USD", value: "500" } };

  test("a stored response is not replayed to a key that does not reach its merchant", async () => {
    const idempotent = { "idempotency-key": randomUUID() };
    const made = await api.post("/v1/payments", { ...shop.headers, ...idempotent }, body);
    expect(made.status).toBe(201);
    const refused = await api.post("/v1/payments", { ...shop.headers, ...idempotent, "api-key": ofSecond }, body);
    expect(refused).toMatchObject({ status: 404, body: { code: "merchant_not_found" } });
    expect(refused.headers.get("idempotent-replayed")).toBeNull();
    const created = { merchantName: "Third Shop", merchantEmail: "third@example.test" };
    expect((await api.post("/v1/merchants", { ...shop.headers, ...idempotent }, created)).status).toBe(201);
    const repeated = await api.post("/v1/merchants", { "api-key": ofSecond, ...idempotent }, created);
    expect(repeated).toMatchObject({ status: 403, body: { code: "forbidden" } });
  });

  test("a key of one merchant cannot observe which idempotency keys another merchant has used", async () => {
    const idempotent = { "idempotency-key": randomUUID() };
    await api.post("/v1/payments", { ...shop.headers, ...idempotent }, body);
    const third = await makeMerchant(api);
    await api.db
      .updateTable("merchant")
      .set({ account_id: shop.accountId })
      .where("id", "=", third.merchantId)
      .execute();
    const key = await restricted(third.merchantId);
    const headers = { "api-key": key, "merchant-id": third.merchantId, ...idempotent };
    expect((await api.post("/v1/payments", headers, { ...body, referenceId: "own" })).status).toBe(201);
  });

  test("a key that reaches the merchant gets the response to another key's request", async () => {
    const idempotent = { "idempotency-key": randomUUID() };
    const made = await api.post("/v1/payments", { ...shop.headers, ...idempotent }, body);
    const key = await restricted(shop.merchantId, second.id);
    const repeated = await api.post("/v1/payments", { ...shop.headers, ...idempotent, "api-key": key }, body);
    expect(repeated).toMatchObject({ status: 201, body: made.body });
    expect(repeated.headers.get("idempotent-replayed")).toBe("true");
  });
});
