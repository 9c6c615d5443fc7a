import { inspect } from "node:util";
import { expect, test } from "vitest";
import { GatewayClient, PaymentClient, PaymentServiceError } from "../../../client/index.ts";
import { json, reset, startScriptedService } from "./scripted-service.ts";

const { baseUrl, requests, script } = await startScriptedService();
const apiKey = "svc_test_5ecretKeyText";
const client = new PaymentClient({ baseUrl: `${baseUrl}/`, apiKey, merchantId: "mrch_1", maxRetries: 0 });

/** Returns the error that a response becomes. */
async function errorOf(status: number, code: string, message = "no"): Promise<PaymentServiceError> {
  script(json(status, { code, message }, { "x-request-id": "req-1" }));
  return client.payments.get("pay_1").then(
    () => Promise.reject(new Error("the call succeeded")),
    (error) => error,
  );
}

test.each([
  [400, "params_validation", "InvalidRequestError"],
  [413, "invalid_params", "InvalidRequestError"],
  [400, "invalid_state", "ConflictError"],
  [400, "payment_not_succeeded", "ConflictError"],
  [401, "invalid_api_key", "AuthenticationError"],
  [403, "forbidden", "PermissionError"],
  [404, "merchant_not_found", "NotFoundError"],
  [409, "idempotency_conflict", "ConflictError"],
  [409, "quote_expired", "QuoteExpiredError"],
  [410, "payment_expired", "PaymentExpiredError"],
  [429, "rate_limited", "RateLimitError"],
  [500, "internal_error", "ServiceError"],
  [418, "a_code_of_a_later_version", "InvalidRequestError"],
  [400, "constructor", "InvalidRequestError"],
  [404, "__proto__", "NotFoundError"],
])("an answer %i %s is a %s", async (status, code, name) => {
  const error = await errorOf(status, code);
  expect(error).toBeInstanceOf(PaymentServiceError);
  expect(error).toMatchObject({ name, code, status, requestId: "req-1", message: "no" });
});

test("an error names the field that the service refuses, and none when the message names none", async () => {
  const field = async (message: string) => (await errorOf(400, "params_validation", message)).field;
  expect(await field("amount.value: expected a string of digits")).toBe("amount.value");
  expect(await field("Idempotency-Key: the header is missing")).toBe("Idempotency-Key");
  expect(await field("settlements.0.asset: is missing; query: no")).toBe("settlements.0.asset");
  expect(await field("no such payment")).toBeUndefined();
});

test("an answer that is not of the service is an error with its status", async () => {
  script((response) => void response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad Gateway</h1>"));
  await expect(client.payments.get("pay_1")).rejects.toMatchObject({ name: "ServiceError", code: "invalid_response" });
  script((response) => void response.writeHead(200).end("<h1>Welcome</h1>"));
  await expect(client.payments.get("pay_1")).rejects.toMatchObject({ code: "invalid_response", status: 200 });
});

test("a redirect is not followed, because it would carry the key to another server", async () => {
  script((response) => void response.writeHead(302, { location: `${baseUrl}/elsewhere` }).end());
  await expect(client.payments.get("pay_1")).rejects.toMatchObject({ code: "redirected", status: 302 });
  expect(requests.map(({ url }) => url)).toEqual(["/v1/payments/pay_1"]);
});

test("neither a client nor an error shows the key", async () => {
  const gateway = new GatewayClient({ baseUrl, apiKey });
  script(reset);
  const failure = await client.payments.get("pay_1").catch((error) => error);
  const shown = [client, gateway, failure, await errorOf(401, "invalid_api_key")].flatMap((one) => [
    inspect(one, { depth: 10, showHidden: true }),
    JSON.stringify(one),
    String(one),
  ]);
  for (const text of shown) expect(text).not.toContain("5ecret");
});

test("a key that cannot be a header is refused without its text, as are other wrong settings", () => {
  const open = (settings: object) => () => new PaymentClient({ baseUrl, apiKey, ...settings });
  expect(open({ apiKey: "svc_test_5ecret\n" })).toThrow(/^apiKey: expected 1 to 512 visible ASCII characters$/);
  expect(open({ apiKey: undefined })).toThrow("apiKey: expected");
  expect(() => new GatewayClient({ baseUrl, appId: "a b" })).toThrow("appId: expected");
  const urls = ["https://user:pw@pay.example.com", "https://:5ecret@pay.example.com", "https://pay.example.com/?"];
  for (const wrong of ["", "pay.example.com", "ftp://pay.example.com", ...urls, "https://pay.example.com/#", undefined])
    expect(open({ baseUrl: wrong })).toThrow(
      /^baseUrl: expected an http or https URL without user, query and fragment$/,
    );
});

test("an id is encoded in the path, and one that would change the path is refused", async () => {
  script(json(200, {}));
  await new GatewayClient({ baseUrl: `${baseUrl}/service/`, appId: "app" }).get("http://127.0.0.1/?pid=pay_1");
  expect(requests[0]?.url).toBe("/service/v1/gateway/payment/http%3A%2F%2F127.0.0.1%2F%3Fpid%3Dpay_1");
  for (const id of ["", "..", "."]) expect(() => client.payments.get(id)).toThrow("an id");
});
