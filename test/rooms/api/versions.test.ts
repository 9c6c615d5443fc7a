import { expect, test } from "vitest";
import { pinVersion } from "../../../payments/versions.ts";
import { makeMerchant, startApi } from "./start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const ask = (headers: Record<string, string>, who = merchant.headers as Record<string, string>) =>
  api.get("/v1/payments", { ...who, ...headers });

test("without a header the account's own version is used and named", async () => {
  const answer = await ask({});
  expect([answer.status, answer.headers.get("svc-version")]).toEqual([200, "2026-02-18"]);
});

test.each(["2026-02-18", "2026-02-19", "2026-02-19.preview"])("version %s may be asked for", async (version) => {
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
])("%s is what %s gets", async (code, version) => {
  expect(await ask({ "svc-version": version })).toMatchObject({ status: 400, body: { code } });
  expect(await api.get(`/v1/gateway/payment/pay_1`, { ...merchant.wallet, "svc-version": version })).toMatchObject({
    status: 400,
    body: { code },
  });
});

test("an account that was moved forward does not go back, and cannot be moved to a preview", async () => {
  const { accountId, headers } = await makeMerchant(api);
  const pin = (version: string) => pinVersion(api.deps, { accountId, version });
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

test("what deployed wallets say of their own versions is ignored", async () => {
  for (const version of ["2026-02-19.preview", "1999-01-01", "garbage"])
    expect((await ask({ "wcp-version": version, "api-version": version })).status).toBe(200);
});
