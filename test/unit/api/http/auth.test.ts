import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, test } from "vitest";
import { type Access, readCredentials } from "../../../../api/http/auth.ts";

const key = "svc_test_1";
const app = { "app-id": "a1", "client-id": "c1" };

describe("the api accepts", () => {
  const accepted: [string, Access, IncomingHttpHeaders, object][] = [
    ["an API key on the gateway", "gateway", { "api-key": key }, { key }],
    ["an API key on a merchant call", "merchant", { "api-key": key }, { key }],
    ["the same key as a bearer token", "merchant", { authorization: `Bearer ${key}` }, { key }],
    ["both forms with the same key", "merchant", { "api-key": key, authorization: `bearer ${key}` }, { key }],
    ["an app id with a client id on the gateway", "gateway", app, { appId: "a1" }],
    ["a key beside an app id", "gateway", { ...app, "api-key": key }, { key }],
    ["a key beside a diagnostic client id", "gateway", { "client-id": "c1", "api-key": key }, { key }],
    [
      "a foreign authorization scheme beside a key",
      "gateway",
      { authorization: "Basic eA==", "api-key": key },
      { key },
    ],
  ];
  test.each(accepted)("%s", (_name, access, headers, value) => {
    expect(readCredentials(headers, access)).toEqual({ ok: true, value });
  });
});

describe("the api rejects", () => {
  const rejected: [string, Access, IncomingHttpHeaders, string][] = [
    ["nothing on the gateway", "gateway", {}, "missing_auth_headers"],
    ["nothing on a merchant call", "merchant", {}, "missing_api_key"],
    ["an empty key on the gateway", "gateway", { "api-key": "" }, "missing_api_key"],
    ["an app id on a merchant call", "merchant", app, "missing_merchant_api_key"],
    ["an app id without a client id", "gateway", { "app-id": "a1" }, "missing_client_id"],
    ["a client id without an app id", "gateway", { "client-id": "c1" }, "missing_app_id"],
    ["two different keys", "gateway", { "api-key": key, authorization: "Bearer other" }, "conflicting_auth_headers"],
    ["an unknown authorization scheme", "merchant", { authorization: "Basic eA==" }, "unauthorized"],
    ["a key that is not ASCII", "gateway", { "api-key": "svc_té" }, "header_not_ascii"],
    ["a merchant that is not ASCII", "merchant", { "api-key": key, "merchant-id": "mrch_é" }, "header_not_ascii"],
  ];
  test.each(rejected)("%s", (_name, access, headers, code) => {
    expect(readCredentials(headers, access)).toMatchObject({ ok: false, code });
  });

  test("a header that the api does not read may hold any value", () => {
    expect(readCredentials({ "api-key": key, "user-agent": "Mozilla é" }, "gateway")).toMatchObject({ ok: true });
  });

  test("an error message never repeats a credential", () => {
    const credentials = readCredentials({ "api-key": "svc_secret1", authorization: "Bearer svc_secret2" }, "gateway");
    expect(JSON.stringify(credentials)).not.toContain("secret");
  });
});
