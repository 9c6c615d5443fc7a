import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { createRequestLog, KEEP_MS, MOST_REQUESTS } from "../../../../api/http/request-log.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { startPrivateRedis } from "../../../support/private-services.ts";
import { redisPrefix } from "../../../support/redis-prefix.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { type Api, makeKey, makeMerchant, makePayment, startApi, type TestMerchant } from "../start-api.ts";

type Entry = { id: string; method: string; path: string; status: number; errorCode: string | null; requestId: string };

const api = await startApi();

async function listLog(merchant: Pick<TestMerchant, "key">, query = "", of: Api = api): Promise<Entry[]> {
  const { status, body } = await of.get(`/v1/request-logs${query}`, { "api-key": merchant.key });
  expect(status).toBe(200);
  return body["data"] as Entry[];
}

/** Waits until the log has so many entries that fit: an entry is written after the response. */
async function waitForLog(merchant: Pick<TestMerchant, "key">, count: number, query = ""): Promise<Entry[]> {
  const read = async () => {
    const entries = await listLog(merchant, query);
    return entries.length >= count && entries;
  };
  return waitFor(read, { within: 20_000, what: `${count} entries` });
}

const inRedis = new Redis(redisPrefix().url);
addCleanup(() => inRedis.disconnect());
const requestLog = createRequestLog({ redis: inRedis, prefix: api.prefix, now: api.deps.now });
const keyOf = (accountId: string) => `${api.prefix}:requests:${accountId}`;

test("the account reads its refused and successful requests, the newest first, with code, id and no query or body", async () => {
  const merchant = await makeMerchant(api);
  const paymentId = await makePayment(api, merchant, { referenceId: "order-secret" });
  await api.post("/v1/payments", { ...merchant.headers, "x-request-id": "mine-1" }, { amount: "12 dollars" });
  await api.get("/v1/payments?referenceId=order-secret", merchant.headers);
  await api.post(`/v1/gateway/payment/${paymentId}/options`, merchant.headers, { accounts: [] });
  const entries = await waitForLog(merchant, 4);
  expect(entries.map(({ method, path, status, errorCode }) => [method, path, status, errorCode])).toEqual([
    ["POST", `/v1/gateway/payment/${paymentId}/options`, 400, "invalid_params"],
    ["GET", "/v1/payments", 200, null],
    ["POST", "/v1/payments", 400, "params_validation"],
    ["POST", "/v1/payments", 201, null],
  ]);
  expect(entries[2]).toMatchObject({ requestId: "mine-1", durationMs: expect.any(Number) });
  expect((await inRedis.xrange(keyOf(merchant.accountId), "-", "+")).flat(2).join()).not.toContain("order-secret");
  expect(await inRedis.pttl(keyOf(merchant.accountId))).toBeGreaterThan(23 * 3_600_000);
});

test("a request that the key's scopes do not permit is in the log, and a key or a pairing link in a path is not", async () => {
  const merchant = await makeMerchant(api);
  const { key } = await makeKey(api, { accountId: merchant.accountId, mode: "test", scopes: ["payments:read"] });
  await api.get("/v1/merchants", { "api-key": key });
  await api.get(`/v1/payments/${key}`, { ...merchant.headers, "api-key": key });
  const link = encodeURIComponent(`wc:0a1b@2?symKey=${"5".repeat(64)}&pay=https://pay.example.test`);
  await api.get(`/v1/gateway/payment/${link}/status`, merchant.headers);
  const [pairing, inPath, forbidden] = await waitForLog({ key }, 3);
  expect(pairing).toMatchObject({ path: "/v1/gateway/payment/…/status" });
  expect(forbidden).toMatchObject({ path: "/v1/merchants", status: 403, errorCode: "forbidden" });
  expect(inPath).toMatchObject({ path: "/v1/payments/svc_test_[redacted]", status: 404 });
});

test("the list is filtered by status and path, is paged, and continues after an entry", async () => {
  const merchant = await makeMerchant(api);
  for (const path of ["/v1/payments/pay_1", "/v1/merchants", "/v1/payments"]) await api.get(path, merchant.headers);
  const [newest, second, oldest] = await waitForLog(merchant, 3);
  expect(await listLog(merchant, "?status=4xx")).toEqual([oldest]);
  expect(await listLog(merchant, "?status=404&path=payments")).toEqual([oldest]);
  expect(await listLog(merchant, "?path=/v1/payments")).toEqual([newest, oldest]);
  expect(await listLog(merchant, `?after=${oldest?.id}`)).toEqual([newest, second]);
  const { body } = await api.get("/v1/request-logs?limit=2", { "api-key": merchant.key });
  expect(await listLog(merchant, `?limit=2&cursor=${body["nextCursor"]}`)).toEqual([oldest]);
  for (const wrong of ["status=9xx", "after=x", "after=0-0", "cursor=x", "cursor=0-0"])
    expect((await api.get(`/v1/request-logs?${wrong}`, { "api-key": merchant.key })).status).toBe(400);
});

test("a reader whose cursor is of an entry that is no longer kept is at the end of the list", async () => {
  const merchant = await makeMerchant(api);
  for (let count = 0; count < 3; count += 1) await api.get("/v1/merchants", merchant.headers);
  const entries = await waitForLog(merchant, 3);
  await inRedis.xtrim(keyOf(merchant.accountId), "MAXLEN", 1);
  expect(await listLog(merchant, `?cursor=${entries[1]?.id}`)).toEqual([]);
});

test("requests with an app id, which is public, neither fill the log nor write into it", async () => {
  const merchant = await makeMerchant(api);
  const paymentId = await makePayment(api, merchant);
  await api.post(`/v1/gateway/payment/${paymentId}/options`, merchant.wallet, { accounts: [] });
  await api.get(`/v1/gateway/payment/pay_${"0".repeat(32)}`, merchant.wallet);
  await api.get("/v1/merchants", merchant.headers);
  await waitForLog(merchant, 1, "?path=/v1/merchants");
  expect((await listLog(merchant)).map(({ path }) => path)).toEqual(["/v1/merchants", "/v1/payments"]);
});

test("an entry holds printable ASCII only, and the beginning of a long request id", async () => {
  const merchant = await makeMerchant(api);
  await api.get("/v1/payments/pay_1", { ...merchant.headers, "x-request-id": "r".repeat(128) });
  await waitForLog(merchant, 1);
  const line = { method: "GET", route: "", status: 404, errorCode: null, requestId: "mine-2", durationMs: 1 };
  requestLog.add(merchant.accountId, { ...line, path: "/v1/payments/\u001b]0;x\u0007\u009b31m\u202epay" });
  const [unclean, long] = await waitForLog(merchant, 2);
  expect(unclean).toMatchObject({ path: "/v1/payments/?]0;x??31m?pay" });
  expect(long).toMatchObject({ requestId: "r".repeat(64) });
});

test("polling the log, the events or the status of a payment leaves the other requests in the log", async () => {
  const merchant = await makeMerchant(api);
  const paymentId = await makePayment(api, merchant);
  for (const path of ["gateway/payment", "payments", "merchant/payment"])
    await api.get(`/v1/${path}/${paymentId}/status`, merchant.headers);
  await api.get(`/v1/gateway/payment/pay_${"0".repeat(32)}/status`, merchant.headers);
  await api.get("/v1/events", { "api-key": merchant.key });
  await api.get("/v1/events?cursor=x", { "api-key": merchant.key });
  await waitForLog(merchant, 3);
  expect(await listLog(merchant)).toMatchObject([
    { path: "/v1/events", status: 400 },
    { path: `/v1/gateway/payment/pay_${"0".repeat(32)}/status`, status: 404 },
    { path: "/v1/payments", status: 201 },
  ]);
});

test("an entry of more than a day ago is not shown, whatever the reader asks for, and is removed with the next request", async () => {
  const merchant = await makeMerchant(api);
  const key = keyOf(merchant.accountId);
  await api.get("/v1/merchants", merchant.headers);
  const [entry] = await waitForLog(merchant, 1);
  const [[, fields]] = (await inRedis.xrange(key, "-", "+")) as [[string, string[]]];
  const old = Date.now() - KEEP_MS - 1_000;
  await inRedis.del(key);
  await inRedis.xadd(key, `${old}-0`, ...fields);
  await inRedis.xadd(key, `${entry?.id}`, ...fields);
  expect(await listLog(merchant, `?after=${old - 1}-0`)).toEqual([entry]);
  await api.get("/v1/payments", merchant.headers);
  await waitForLog(merchant, 1, "?path=/v1/payments");
  expect(await inRedis.xlen(key)).toBe(2);
});

test("an entry that this version cannot read is left out", async () => {
  const merchant = await makeMerchant(api);
  for (const text of ["", "{}", "null"]) await inRedis.xadd(keyOf(merchant.accountId), "*", "request", text);
  await inRedis.xadd(keyOf(merchant.accountId), "*", "other", "1");
  await api.get("/v1/merchants", merchant.headers);
  expect(await waitForLog(merchant, 1)).toMatchObject([{ path: "/v1/merchants" }]);
});

test("the log of an account takes less than 400 KB, also with the longest paths and ids", async () => {
  const merchant = await makeMerchant(api);
  const longest = `/v1/payments/${`${"p".repeat(81)}/`.repeat(100)}`;
  const filling = { method: "OPTIONS", route: "", status: 400, errorCode: "e".repeat(40), durationMs: 100_000 };
  for (let count = 0; count < MOST_REQUESTS; count += 1)
    requestLog.add(merchant.accountId, { ...filling, path: longest, requestId: randomUUID() + randomUUID() });
  await waitFor(async () => (await inRedis.xlen(keyOf(merchant.accountId))) === MOST_REQUESTS, {
    within: 20_000,
    what: "a full log",
  });
  expect(await inRedis.memory("USAGE", keyOf(merchant.accountId), "SAMPLES", 0)).toBeLessThan(400_000);
});

test("the log holds the latest requests only", async () => {
  const merchant = await makeMerchant(api);
  await makePayment(api, merchant);
  await waitForLog(merchant, 1);
  const [[, fields]] = (await inRedis.xrange(keyOf(merchant.accountId), "-", "+")) as [[string, string[]]];
  const filling = inRedis.pipeline();
  for (let count = 0; count < MOST_REQUESTS; count += 1) filling.xadd(keyOf(merchant.accountId), "*", ...fields);
  await filling.exec();
  await api.get("/v1/merchants", merchant.headers);
  await waitForLog(merchant, 1, "?path=/v1/merchants");
  expect(await inRedis.xlen(keyOf(merchant.accountId))).toBe(MOST_REQUESTS);
});

test("requests of live mode are not logged, and the response says so", async () => {
  const merchant = await makeMerchant(api, { mode: "live" });
  const answer = await api.get("/v1/request-logs", { "api-key": merchant.key });
  expect(answer).toMatchObject({ status: 400, body: { code: "not_sandbox_api_key" } });
  const other = await makeMerchant(api);
  await api.get("/v1/merchants", other.headers);
  await waitForLog(other, 1);
  expect(await inRedis.exists(keyOf(merchant.accountId))).toBe(0);
});

test("without Redis every request is served, and only the log is unavailable", async () => {
  const redis = await startPrivateRedis();
  const alone = await startApi({ redisUrl: redis.url });
  const merchant = await makeMerchant(alone);
  await redis.stop();
  await makePayment(alone, merchant);
  const { status } = await alone.get("/v1/request-logs", { "api-key": merchant.key });
  expect(status).toBe(503);
});
