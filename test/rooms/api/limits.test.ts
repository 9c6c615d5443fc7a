import { expect, test } from "vitest";
import { addressGroup } from "../../../api/limits.ts";
import { startPrivateRedis } from "../../support/private-services.ts";
import { makeMerchant, makePayment, startApi } from "./start-api.ts";

type Api = Awaited<ReturnType<typeof startApi>>;
const status = (api: Api, headers: Record<string, string>) => api.get("/v1/payments", headers);
const from = (ip: string) => ({ "x-forwarded-for": ip });

test("a key may ask so often a minute, over all processes together, and is then told when to come again", async () => {
  const limits = { perAddress: 0, perKey: 5 };
  const one = await startApi({ limits });
  const two = await startApi({ limits, databaseUrl: one.databaseUrl, redisPrefix: one.prefix });
  const { headers, wallet } = await makeMerchant(one);
  const { headers: others } = await makeMerchant(one);
  for (let asked = 1; asked <= 5; asked += 1) {
    const answer = await status(asked % 2 ? one : two, headers);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("ratelimit-limit")).toBe("5");
    expect(answer.headers.get("ratelimit-remaining")).toBe(String(5 - asked));
  }
  for (const api of [one, two]) {
    const refused = await status(api, headers);
    expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited" } });
    const seconds = Number(refused.headers.get("retry-after"));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(refused.headers.get("ratelimit-remaining")).toBe("0");
    expect(refused.headers.get("ratelimit-reset")).toBe(String(seconds));
  }
  expect((await status(one, others)).status).toBe(200);
  // An app id is every wallet's, so it is not counted as one caller.
  for (let asked = 0; asked < 7; asked += 1)
    expect((await one.get(`/v1/gateway/payment/pay_${"0".repeat(32)}`, wallet)).status).toBe(404);
  expect((await one.metrics.rateLimited.get()).values).toMatchObject([{ labels: { by: "key" }, value: 1 }]);
});

test("an address may ask so often, also without a key that is any good", async () => {
  const api = await startApi({ limits: { perAddress: 3, perKey: 0 }, trustedProxies: ["127.0.0.1"] });
  const guess = (ip: string) => api.get("/v1/payments", { "api-key": `svc_${Math.random()}`, ...from(ip) });
  for (let asked = 0; asked < 3; asked += 1) expect((await guess("203.0.113.1")).status).toBe(401);
  expect(await guess("203.0.113.1")).toMatchObject({ status: 429, body: { code: "rate_limited" } });
  expect((await guess("203.0.113.2")).status).toBe(401);
  // What the address says itself before the proxy's word changes nothing.
  expect((await guess("198.51.100.7, 203.0.113.1")).status).toBe(429);
});

test("a payment on the gateway may be asked for so often from one address, and its buyer at another one is not kept out", async () => {
  const limits = { perAddress: 0, perKey: 0, perPayment: 3 };
  const api = await startApi({ limits, trustedProxies: ["127.0.0.1"] });
  const merchant = await makeMerchant(api);
  const [one, two] = [await makePayment(api, merchant), await makePayment(api, merchant)];
  const confirm = (id: string, ip: string) =>
    api.post(
      `/v1/gateway/payment/${id}/confirm`,
      { ...merchant.wallet, ...from(ip) },
      { optionId: "opt_0", results: [] },
    );
  for (let asked = 0; asked < 3; asked += 1) expect((await confirm(one, "203.0.113.1")).status).toBe(400);
  const refused = await confirm(one, "203.0.113.1");
  expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited" } });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect((await confirm(one, "203.0.113.2")).status).toBe(400);
  expect((await confirm(two, "203.0.113.1")).status).toBe(400);
});

test("nobody but a trusted proxy may say what the address is", async () => {
  const api = await startApi({ limits: { perAddress: 2, perKey: 0 } });
  const guess = (ip: string) => api.get("/v1/payments", from(ip));
  for (const ip of ["203.0.113.1", "203.0.113.2"]) expect((await guess(ip)).status).toBe(401);
  expect((await guess("203.0.113.3")).status).toBe(429);
});

test.each([
  ["203.0.113.9", "203.0.113.9"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::", "2001:db8:1:2::/64"],
  ["what", "what"],
])("the address %s is counted as %s", (ip, group) => {
  expect(addressGroup(ip)).toBe(group);
});

test("without Redis, and with one that hangs, calls are served and each process counts by itself", async () => {
  const redis = await startPrivateRedis();
  const api = await startApi({ redisUrl: redis.url, limits: { perAddress: 0, perKey: 4 } });
  const { headers } = await makeMerchant(api);
  expect((await status(api, headers)).status).toBe(200);
  await redis.kill("SIGSTOP");
  const began = performance.now();
  for (let asked = 0; asked < 4; asked += 1) expect((await status(api, headers)).status).toBe(200);
  expect(performance.now() - began).toBeLessThan(5_000);
  expect((await status(api, headers)).status).toBe(429);
  await redis.kill("SIGCONT");
});
