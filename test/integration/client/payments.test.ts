import { expect, test } from "vitest";
import {
  ConflictError,
  GatewayClient,
  InvalidRequestError,
  NotFoundError,
  PaymentClient,
} from "../../../client/index.ts";
import { makeMerchant, startApi } from "../api/start-api.ts";

const api = await startApi({ allowsPrivateHooks: true });
const { key, merchantId, wallet } = await makeMerchant(api);
const client = new PaymentClient({ baseUrl: api.url, apiKey: key, merchantId });
const gateway = new GatewayClient({ baseUrl: api.url, appId: wallet["app-id"] });
const amount = { unit: "iso4217/USD", value: "1250" };

test("a merchant's server creates a payment, waits until it is final, and finds it in its lists", async () => {
  const { paymentId, warnings } = await client.payments.create({
    referenceId: "order-1",
    amount,
    metadata: { cart: "7" },
  });
  expect(warnings).toEqual([]);
  const account = `eip155:31337:0x${"a9".repeat(20)}`;
  const { options, info } = await gateway.options(paymentId, [account], { includePaymentInfo: true });
  expect(options.map((option) => option.account)).toEqual([account]);
  expect(info).toMatchObject({ paymentId, status: "requires_action" });
  const waiting = client.payments.waitUntilFinal(paymentId);
  const asBuyer = gateway.waitUntilFinal(paymentId);
  await client.payments.simulate(paymentId, "succeeded");
  for (const one of [waiting, asBuyer]) expect(await one).toMatchObject({ status: "succeeded", isFinal: true });
  expect(await client.payments.get(paymentId)).toMatchObject({ referenceId: "order-1", metadata: { cart: "7" } });
  const found = await Array.fromAsync(client.payments.list({ metadata: ["cart:7"], status: ["succeeded"] }));
  expect(found.map((payment) => payment.paymentId)).toEqual([paymentId]);
});

test("a list yields every payment once, however small its pages are", async () => {
  const ids = [];
  for (const n of [1, 2, 3, 4, 5])
    ids.push((await client.payments.create({ referenceId: `paged-${n}`, amount })).paymentId);
  const listed = await Array.fromAsync(client.payments.list({ referenceId: "paged-", limit: 2, sortDir: "asc" }));
  expect(listed.map((payment) => payment.paymentId)).toEqual(ids);
  const pages = await Array.fromAsync(client.merchants.listPayments(merchantId, { limit: 4 }).pages());
  expect(pages.at(0)).toMatchObject({ data: { length: 4 }, stats: { totalCustomers: expect.any(Number) } });
});

test("a creation that is repeated with its key returns the same payment, and another one with that key is refused", async () => {
  const options = { idempotencyKey: "order-77" };
  const first = await client.payments.create({ referenceId: "order-77", amount }, options);
  expect(await client.payments.create({ referenceId: "order-77", amount }, options)).toEqual(first);
  const other = client.payments.create({ referenceId: "order-78", amount }, options);
  await expect(other).rejects.toThrow(ConflictError);
  await expect(other).rejects.toMatchObject({ code: "idempotency_conflict", status: 409 });
});

test("a request that the service refuses is an error with its code, its field and the id of the request", async () => {
  const refused = client.payments.create({ amount: { unit: "iso4217/USD", value: "12.50" } });
  await expect(refused).rejects.toThrow(InvalidRequestError);
  await expect(refused).rejects.toMatchObject({
    code: "params_validation",
    field: "amount.value",
    requestId: expect.any(String),
  });
  await expect(client.payments.get(`pay_${"0".repeat(32)}`)).rejects.toThrow(NotFoundError);
});

test("a payment that is paid cannot be cancelled, and a refund of a test payment succeeds at once", async () => {
  const { paymentId } = await client.payments.create({ amount });
  const cancelled = await client.payments.cancel(paymentId);
  expect(cancelled).toMatchObject({ status: "cancelled" });
  expect(await client.payments.cancel(paymentId)).toEqual(cancelled);
  const { paymentId: paid } = await client.payments.create({ amount });
  await client.payments.simulate(paid, "succeeded");
  await expect(client.payments.cancel(paid)).rejects.toMatchObject({ name: "ConflictError", code: "invalid_state" });
  const refund = await client.refunds.create({ paymentId: paid });
  expect(refund).toMatchObject({ paymentId: paid, status: "succeeded", isRecordOnly: true });
  expect(await client.refunds.get(refund.refundId)).toEqual(refund);
  expect(await Array.fromAsync(client.refunds.list({ paymentId: paid }))).toEqual([refund]);
});

test("events are read from a cursor on, with the data that their type says", async () => {
  const { paymentId } = await client.payments.create({ referenceId: "order-9", amount });
  await client.payments.simulate(paymentId, "expired");
  const pages = await Array.fromAsync(client.events.list({ limit: 2 }).pages());
  const events = pages.flatMap(({ data }) => data);
  const expired = events.find(
    ({ type, data }) => type === "payment.expired" && "payment_id" in data && data.payment_id === paymentId,
  );
  if (expired?.type !== "payment.expired") throw new Error("there is no event of the expiry");
  expect(expired.data.expired?.expired_at).toBe(expired.created_at);
  expect(expired.data).toMatchObject({ reference_id: "order-9", live: false, success: null });
  expect((await client.events.get(expired.id)).event).toEqual(expired);
  const cursor = pages.at(-1)?.nextCursor ?? "";
  expect(await Array.fromAsync(client.events.list({ cursor }))).toEqual([]);
  await client.payments.create({ amount });
  expect(await Array.fromAsync(client.events.list({ cursor }))).toMatchObject([{ type: "payment.created" }]);
});

test("an account manages its merchants, keys, app ids, destinations and endpoints", async () => {
  const { merchant } = await client.merchants.create({ merchantName: "Second", merchantEmail: "second@example.test" });
  expect(await client.merchants.update(merchant.id, { merchantName: "Renamed" })).toMatchObject({
    merchant: { name: "Renamed" },
  });
  expect((await Array.fromAsync(client.merchants.list({ limit: 1 }))).map(({ id }) => id)).toContain(merchant.id);
  const [asset, destination] = [`eip155:31337/erc20:0x${"a1".repeat(20)}`, `eip155:31337:0x${"d2".repeat(20)}`];
  const { settlements } = await client.settlements.create(merchant.id, { settlements: [{ asset, destination }] });
  expect(await client.settlements.list(merchant.id)).toMatchObject({ crypto: settlements });
  expect(await Array.fromAsync(client.settlements.listChanges(merchant.id))).toMatchObject([{ destination }]);
  expect(await Array.fromAsync(client.balances.list())).toEqual([]);
  const month = { from: "2026-01-01", until: "2026-01-31" };
  expect(await Array.fromAsync(client.statements.list(month))).toEqual([]);
  expect(await new Response(await client.statements.csv(month)).text()).toMatch(/^[\w,]+\r\n$/);
  await expect(client.statements.csv({ ...month, until: "soon" })).rejects.toMatchObject({ code: "params_validation" });

  const { apiKey, key: text } = await client.apiKeys.create({ scopes: ["payments:read"], merchantIds: [merchant.id] });
  const limited = new PaymentClient({ baseUrl: api.url, apiKey: text, merchantId: merchant.id });
  await expect(limited.payments.create({ amount })).rejects.toMatchObject({ name: "PermissionError" });
  await client.apiKeys.revoke(apiKey.id);
  await expect(Array.fromAsync(limited.refunds.list())).rejects.toMatchObject({ name: "AuthenticationError" });

  const { appId } = await client.appIds.create();
  expect(await Array.fromAsync(client.appIds.list())).toContainEqual(appId);
  const { webhookEndpoint, secret } = await client.webhookEndpoints.create({ url: "https://shop.example.com/hooks" });
  expect(secret).toMatch(/^whsec_/);
  expect((await client.webhookEndpoints.rotateSecret(webhookEndpoint.id, { now: true })).secret).not.toBe(secret);
  const { eventId } = await client.webhookEndpoints.test(webhookEndpoint.id);
  const deliveries = await Array.fromAsync(client.webhookDeliveries.list(webhookEndpoint.id));
  expect(deliveries).toMatchObject([{ eventId, type: "webhook_endpoint.test" }]);
  await client.webhookEndpoints.delete(webhookEndpoint.id);
  await expect(client.webhookEndpoints.get(webhookEndpoint.id)).rejects.toMatchObject({
    code: "webhook_endpoint_not_found",
  });
});
