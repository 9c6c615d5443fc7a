import { expect, test } from "vitest";
import { makeMerchant, makePayment, publicUrl, startApi } from "../start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const accounts = [`eip155:31337:0x${"c1".repeat(20)}`];
const encode = encodeURIComponent;

test("the gateway URL is accepted as an id on every gateway call, encoded once or twice as wallets do", async () => {
  const made = await api.post("/v1/payments", merchant.headers, { amount: { unit: "iso4217/USD", value: "500" } });
  const { gatewayUrl, paymentId } = made.body as { gatewayUrl: string; paymentId: string };
  expect(gatewayUrl).toBe(`${publicUrl}/?pid=${paymentId}`);
  const pairing = `wc:abc@2?relay-protocol=irn&pay=${encode(gatewayUrl)}`;
  for (const given of [
    paymentId,
    encode(gatewayUrl),
    encode(encode(gatewayUrl)),
    encode(pairing),
    encode(encode(pairing)),
  ]) {
    const path = `/v1/gateway/payment/${given}`;
    const options = await api.post(`${path}/options?includePaymentInfo=true`, merchant.wallet, { accounts });
    expect(options).toMatchObject({ status: 200, body: { info: { paymentId } } });
    const [option] = options.body["options"] as [{ id: string }];
    expect(await api.post(`${path}/fetch`, merchant.wallet, { optionId: option.id, data: "" })).toMatchObject({
      status: 200,
    });
    expect(await api.get(`${path}/status`, merchant.wallet)).toMatchObject({ status: 200 });
    expect(await api.get(path, merchant.wallet)).toMatchObject({ status: 200, body: { paymentId } });
    const confirm = await api.post(`${path}/confirm`, merchant.wallet, { optionId: option.id, results: [] });
    expect(confirm).toMatchObject({ status: 400, body: { code: "invalid_params" } });
  }
  expect(await api.post(`/v1/gateway/payment/${encode(encode(gatewayUrl))}/cancel`, merchant.wallet, {})).toMatchObject(
    {
      status: 200,
      body: { paymentId, status: "cancelled" },
    },
  );
});

test("every form of a payment link is accepted as an id, encoded once or twice", async () => {
  const id = await makePayment(api, merchant);
  const { host } = new URL(publicUrl);
  const links = [
    `${publicUrl}/?pid=${id}`,
    `${publicUrl}/${id}`,
    `${publicUrl}/buy?pid=${id}`,
    `https://eu.${host.toUpperCase()}:8443/buy?x=1&pid=${id}&returnUrl=app%3A%2F%2Fshop&preferUniversalLinks=1`,
    `http://${host}/${id}`,
  ];
  const pairings = links.flatMap((link) => [
    `wc:abc@2?pay=${encode(link)}&relay-protocol=irn&symKey=1`,
    `wc:abc@2?relay-protocol=irn&pay=${encode(link)}&symKey=1`,
  ]);
  for (const form of [...links, ...pairings])
    for (const given of [encode(form), encode(encode(form))]) {
      const answer = await api.get(`/v1/gateway/payment/${given}`, merchant.wallet);
      expect([form, answer.status, answer.body["paymentId"]]).toEqual([form, 200, id]);
    }
});

test("another host's link is not a payment, whatever id it contains", async () => {
  const id = await makePayment(api, merchant);
  for (const link of [
    `https://evil.example/?pid=${id}`,
    `${publicUrl}@evil.example/?pid=${id}`,
    `${publicUrl}.evil.example/${id}`,
  ])
    for (const given of [encode(link), encode(encode(link))]) {
      const answer = await api.get(`/v1/gateway/payment/${given}/status`, merchant.wallet);
      expect(answer).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
    }
});
