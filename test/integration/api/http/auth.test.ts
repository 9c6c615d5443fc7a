import { beforeAll, describe, expect, test } from "vitest";
import { scopes } from "../../../../payments/merchants/scopes.ts";
import { type Api, makeMerchant, makePayment, startApi, type TestMerchant } from "../start-api.ts";

let api: Api;
let shop: TestMerchant;
let other: TestMerchant;
let live: TestMerchant;
let id: string;

beforeAll(async () => {
  api = await startApi();
  [shop, other, live] = await Promise.all([makeMerchant(api), makeMerchant(api), makeMerchant(api, { mode: "live" })]);
  id = await makePayment(api, shop);
});

const merchantPaths = () => [`/v1/payments/${id}/status`, `/v1/merchant/payment/${id}/status`];
const gatewayPaths = () => [`/v1/gateway/payment/${id}/status`, `/v1/gateway/payment/${id}`];
const readOutcome = async (path: string, headers: Record<string, string>) => {
  const answer = await api.get(path, headers);
  return [answer.status, answer.body["code"]];
};

describe("merchant calls", () => {
  test("a merchant call accepts the merchant's own key in either header", async () => {
    for (const path of merchantPaths()) {
      expect(await readOutcome(path, shop.headers)).toEqual([200, undefined]);
      const bearer = { authorization: `Bearer ${shop.key}`, "merchant-id": shop.merchantId };
      expect(await readOutcome(path, bearer)).toEqual([200, undefined]);
    }
  });

  test("a merchant call needs a key, and an app id is not enough", async () => {
    const merchant = { "merchant-id": shop.merchantId };
    for (const path of merchantPaths()) {
      expect(await readOutcome(path, merchant)).toEqual([401, "missing_api_key"]);
      expect(await readOutcome(path, { ...merchant, ...shop.wallet })).toEqual([401, "missing_merchant_api_key"]);
      expect(await readOutcome(path, { ...merchant, "api-key": `${shop.key}x` })).toEqual([401, "invalid_api_key"]);
      expect(await readOutcome(path, { ...merchant, authorization: "Basic eHg6eHg=" })).toEqual([401, "unauthorized"]);
      expect(await readOutcome(path, { ...shop.headers, authorization: "Bearer svc_test_x" })).toEqual([
        400,
        "conflicting_auth_headers",
      ]);
    }
  });

  test("401 carries a challenge, and other refusals carry none", async () => {
    const challenge = async (headers: Record<string, string>) =>
      (await api.get(`/v1/payments/${id}/status`, headers)).headers.get("www-authenticate");
    expect(await challenge({})).toMatch(/^Bearer realm=/);
    expect(await challenge({ ...shop.headers, "api-key": "svc_test_x" })).toMatch(/^Bearer realm=/);
    expect(await challenge({ "api-key": shop.key })).toBeNull();
  });

  test("a merchant call needs the merchant's id in ASCII", async () => {
    for (const path of merchantPaths()) {
      expect(await readOutcome(path, { "api-key": shop.key })).toEqual([400, "missing_merchant_id"]);
      expect(await readOutcome(path, { ...shop.headers, "merchant-id": "mrch_é" })).toEqual([400, "header_not_ascii"]);
    }
  });

  test("a merchant call refuses a key that only has the scope of the gateway", async () => {
    const wallets = await makeMerchant(api, { scopes: ["gateway"] });
    expect(await readOutcome(`/v1/payments/${id}/status`, wallets.headers)).toEqual([403, "forbidden"]);
    const made = await api.post("/v1/payments", wallets.headers, { amount: { unit: "iso4217/USD", value: "1" } });
    expect([made.status, made.body["code"]]).toEqual([403, "forbidden"]);
  });

  test("a merchant call never shows a payment of another account or mode", async () => {
    for (const path of merchantPaths()) {
      expect(await readOutcome(path, other.headers)).toEqual([404, "payment_not_found"]);
      expect(await readOutcome(path, live.headers)).toEqual([404, "payment_not_found"]);
      expect(await readOutcome(path, { ...other.headers, "merchant-id": shop.merchantId })).toEqual([
        404,
        "payment_not_found",
      ]);
    }
  });

  test("a merchant call creates no payment for another account's merchant", async () => {
    const headers = { "api-key": other.key, "merchant-id": shop.merchantId };
    const made = await api.post("/v1/payments", headers, { amount: { unit: "iso4217/USD", value: "1" } });
    expect([made.status, made.body["code"]]).toEqual([404, "merchant_not_found"]);
  });
});

describe("gateway calls", () => {
  test("a gateway call accepts any account's key or app id of the payment's mode", async () => {
    for (const path of gatewayPaths())
      for (const headers of [{ "api-key": shop.key }, shop.wallet, { "api-key": other.key }, other.wallet])
        expect(await readOutcome(path, headers)).toEqual([200, undefined]);
  });

  test("a gateway call does not show a test payment to a live caller", async () => {
    for (const path of gatewayPaths())
      for (const headers of [{ "api-key": live.key }, live.wallet])
        expect(await readOutcome(path, headers)).toEqual([404, "payment_not_found"]);
  });

  test("a gateway call needs one complete scheme", async () => {
    const [path = ""] = gatewayPaths();
    const { "app-id": appId, "client-id": clientId } = shop.wallet;
    expect(await readOutcome(path, {})).toEqual([401, "missing_auth_headers"]);
    expect(await readOutcome(path, { "api-key": "" })).toEqual([401, "missing_api_key"]);
    expect(await readOutcome(path, { "app-id": appId })).toEqual([400, "missing_client_id"]);
    expect(await readOutcome(path, { "client-id": clientId })).toEqual([401, "missing_app_id"]);
    expect(await readOutcome(path, { "app-id": "unknown", "client-id": clientId })).toEqual([401, "invalid_app_id"]);
    expect(await readOutcome(path, { "api-key": "svc_test_unknown" })).toEqual([401, "invalid_api_key"]);
  });

  test("a gateway call refuses a key without the scope of the gateway", async () => {
    const backend = await makeMerchant(api, { scopes: scopes.filter((scope) => scope !== "gateway") });
    expect(await readOutcome(`/v1/gateway/payment/${id}/status`, { "api-key": backend.key })).toEqual([
      403,
      "forbidden",
    ]);
  });
});

test("an unauthenticated caller is refused before the body is read", async () => {
  const answer = await api.ask("POST", "/v1/payments", { text: "{not json", headers: { "content-type": "text/xml" } });
  expect([answer.status, answer.body["code"]]).toEqual([401, "missing_api_key"]);
});
