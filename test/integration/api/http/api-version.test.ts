import { expect, test } from "vitest";
import { pinVersion } from "../../../../payments/merchants/pin-version.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeMerchant, startApi } from "../start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const ask = (headers: Record<string, string>, caller = merchant.headers as Record<string, string>) =>
  api.get("/v1/payments", { ...caller, ...headers });

test("a request without the header uses and names the account's own version", async () => {
  const answer = await ask({});
  expect([answer.status, answer.headers.get("svc-version")]).toEqual([200, "2026-02-18"]);
});

test.each(["2026-02-18", "2026-02-19", "2026-02-19.preview"])("a request may name version %s", async (version) => {
  const answer = await ask({ "svc-version": version });
  expect([answer.status, answer.headers.get("svc-version")]).toEqual([200, version]);
});

test.each([
  ["invalid_api_version", "newest"],
  ["invalid_api_version", "2026-2-18"],
  ["invalid_api_version", "2026-02-30"],
  ["invalid_api_version", "2026-02-19.beta"],
  ["invalid_api_version", "2026-02-18, 2026-02-19"],
  ["unknown_api_version", "2026-02-20"],
  ["unknown_api_version", "2019-01-01"],
  ["unknown_api_version", "2026-02-18.preview"],
])("the error %s is returned for version %s", async (code, version) => {
  expect(await ask({ "svc-version": version })).toMatchObject({ status: 400, body: { code } });
  expect(await api.get(`/v1/gateway/payment/pay_1`, { ...merchant.wallet, "svc-version": version })).toMatchObject({
    status: 400,
    body: { code },
  });
});

test("an account that was moved to a newer version cannot go back or be pinned to a preview", async () => {
  const { accountId, headers } = await makeMerchant(api);
  const pin = (version: string) => pinVersion(api.deps, { actor: testActor, accountId, version });
  expect(await pin("2026-02-19.preview")).toMatchObject({ code: "unknown_api_version" });
  expect(await pin("2026-02-19")).toMatchObject({ ok: true });
  expect(await pin("2026-02-18")).toMatchObject({ code: "api_version_downgrade" });
  expect((await ask({}, headers)).headers.get("svc-version")).toBe("2026-02-19");
  expect(await ask({ "svc-version": "2026-02-18" }, headers)).toMatchObject({
    status: 400,
    body: { code: "api_version_downgrade" },
  });
  expect((await ask({ "svc-version": "2026-02-19.preview" }, headers)).status).toBe(200);
});

test("the version headers of deployed wallets are ignored", async () => {
  for (const version of ["2026-02-19.preview", "1999-01-01", "garbage"])
    expect((await ask({ "wcp-version": version, "api-version": version })).status).toBe(200);
});
