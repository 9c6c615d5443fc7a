import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { asset, makeKey, makeMerchant, makePayment, startApi } from "../start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const get = (id: string, headers: Record<string, string> = merchant.headers) => api.get(`/v1/payments/${id}`, headers);

test("a merchant reads a payment's request, its status and how it was paid", async () => {
  const checkout = { successUrl: "https://shop.test/ok", errorUrl: "https://shop.test/no" };
  const expiresAt = Math.floor(Date.now() / 1000) + 900;
  const id = await makePayment(api, merchant, { referenceId: "order/7", expiresAt, checkout });
  const waiting = (await get(id)).body;
  expect(waiting).toEqual({
    id,
    paymentId: id,
    merchantId: merchant.merchantId,
    referenceId: "order/7",
    description: null,
    metadata: {},
    amount: {
      unit: "iso4217/USD",
      value: "500",
      display: expect.objectContaining({ assetSymbol: "USD", decimals: 2 }),
    },
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    expiresAt,
    gatewayUrl: expect.stringMatching(new RegExp(`^https?://[^/]+/\\?pid=${id}$`)),
    checkout,
    status: "requires_action",
    isFinal: false,
    pollInMs: 1000,
    info: null,
    settlement: null,
    refundedAmount: null,
  });
  await api.post(`/v1/payments/${id}/simulate`, merchant.headers, { status: "succeeded" });
  expect((await get(id)).body).toEqual({
    ...waiting,
    status: "succeeded",
    isFinal: true,
    pollInMs: null,
    info: { txId: `test:${id}`, optionAmount: expect.objectContaining({ unit: `caip19/${asset}`, value: "5000000" }) },
  });
  const headers = { ...merchant.headers, "idempotency-key": randomUUID() };
  const amount = { unit: "iso4217/USD", value: "200" };
  await api.post("/v1/refunds", headers, { paymentId: id, amount });
  const refundedAmount = { unit: `caip19/${asset}`, value: "2000000", display: { assetSymbol: "USDC", decimals: 6 } };
  expect((await get(id)).body).toMatchObject({ status: "succeeded", refundedAmount });
});

test("a failed payment has a failure code", async () => {
  const id = await makePayment(api, merchant);
  await api.post(`/v1/payments/${id}/simulate`, merchant.headers, { status: "failed" });
  expect((await get(id)).body).toMatchObject({ status: "failed", failureCode: "declined_user", info: null });
});

test("another merchant, account or mode cannot read the payment", async () => {
  const id = await makePayment(api, merchant);
  const strangers = [
    (await makeMerchant(api)).headers,
    (await makeMerchant(api, { mode: "live" })).headers,
    { ...(await makeMerchant(api)).headers, "merchant-id": merchant.merchantId },
    { ...merchant.headers, "merchant-id": `mrch_${"0".repeat(32)}` },
  ];
  for (const headers of strangers)
    expect(await get(id, headers)).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
});

test("the owner of both modes learns that the payment is in the other one, and a stranger does not", async () => {
  const id = await makePayment(api, merchant);
  const { accountId } = merchant;
  const live = await makeKey(api, { accountId, mode: "live", scopes: ["payments:read", "refunds"] });
  const headers = { "api-key": live.key, "merchant-id": merchant.merchantId };
  const message = expect.stringMatching(/^no such payment in live mode; it is a test payment, and test and live data/);
  const missing = { status: 404, body: { code: "payment_not_found", message } };
  expect(await get(id, headers)).toMatchObject(missing);
  expect(await api.post("/v1/refunds", headers, { paymentId: id })).toMatchObject(missing);
  const stranger = await makeMerchant(api, { mode: "live" });
  expect((await get(id, stranger.headers)).body["message"]).toBe("no such payment");
  expect((await get(`pay_${"0".repeat(32)}`, headers)).body["message"]).toBe("no such payment");
});

test("the owner of both modes learns that the merchant is of the other one, and a stranger does not", async () => {
  const { accountId, merchantId } = merchant;
  const live = await makeKey(api, {
    accountId,
    mode: "live",
    scopes: ["payments:read", "payments:write", "merchants"],
  });
  const headers = { "api-key": live.key, "merchant-id": merchantId };
  const amount = { unit: "iso4217/USD", value: "500" };
  const message = expect.stringMatching(/no such merchant in live mode; it is a test merchant, and test and live data/);
  const missing = { status: 404, body: { code: "merchant_not_found", message } };
  expect(await api.post("/v1/payments", headers, { amount })).toMatchObject(missing);
  expect(await api.get("/v1/merchants/payments", headers)).toMatchObject(missing);
  expect(await api.get(`/v1/merchants/${merchantId}`, { "api-key": live.key })).toMatchObject(missing);
  const stranger = await makeMerchant(api, { mode: "live" });
  const theirs = { ...stranger.headers, "merchant-id": merchantId };
  expect((await api.post("/v1/payments", theirs, { amount })).body["message"]).toBe("no such merchant");
  const restricted = await makeKey(api, {
    ...{ accountId: stranger.accountId, mode: "live", scopes: ["payments:write"] },
    onlyMerchants: [stranger.merchantId],
  });
  const limited = { "api-key": restricted.key, "merchant-id": merchantId };
  expect((await api.post("/v1/payments", limited, { amount })).body["message"]).toBe("no such merchant");
});
