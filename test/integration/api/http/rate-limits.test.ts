import { expect, test } from "vitest";
import { addressLimitKey } from "../../../../api/http/rate-limits.ts";
import { inRealTime } from "../../../support/in-real-time.ts";
import { startPrivateRedis } from "../../../support/private-services.ts";
import { makeMerchant, makePayment, startApi } from "../start-api.ts";

type Api = Awaited<ReturnType<typeof startApi>>;
const status = (api: Api, headers: Record<string, string>) => api.get("/v1/payments", headers);
const addresses = (count: number) =>
  Array.from({ length: count }, (_, index) => `eip155:999:0x${index.toString(16).padStart(40, "0")}`);
const from = (ip: string) => ({ "x-forwarded-for": ip });

// A process that waits longer than 100 ms for Redis counts by itself.
test(
  "a key has a limit per minute over all processes together, and a refused caller learns when to retry",
  inRealTime,
  async () => {
    const limits = { perAddress: 0, perKey: 5 };
    const one = await startApi({ limits });
    const two = await startApi({ limits, databaseUrl: one.databaseUrl, redisPrefix: one.prefix });
    const { headers, wallet } = await makeMerchant(one);
    const { headers: others } = await makeMerchant(one);
    for (let calls = 1; calls <= 5; calls += 1) {
      const answer = await status(calls % 2 ? one : two, headers);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("ratelimit-limit")).toBe("5");
      expect(answer.headers.get("ratelimit-remaining")).toBe(String(5 - calls));
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
    // Many wallets share an app id, so it does not count as one caller.
    for (let calls = 0; calls < 7; calls += 1)
      expect((await one.get(`/v1/gateway/payment/pay_${"0".repeat(32)}`, wallet)).status).toBe(404);
    expect((await one.metrics.rateLimited.get()).values).toMatchObject([{ labels: { by: "key" }, value: 1 }]);
  },
);

test(
  "a process counts most requests of a caller by itself, and two processes refuse them together",
  inRealTime,
  async () => {
    const limits = { perAddress: 0, perKey: 200 };
    const one = await startApi({ limits });
    const two = await startApi({ limits, databaseUrl: one.databaseUrl, redisPrefix: one.prefix });
    const { headers } = await makeMerchant(one);
    const ends: number[] = [];
    for (let calls = 0; calls < 220; calls += 1) ends.push((await status(calls % 2 ? one : two, headers)).status);
    const accepted = ends.filter((end) => end === 200).length;
    // Each process may accept 2 % of the limit beyond what it has added to the counter.
    expect(accepted).toBeGreaterThanOrEqual(200);
    expect(accepted).toBeLessThanOrEqual(208);
  },
);

test("requests of one minute do not count in the next one, in any process", inRealTime, async () => {
  const clock = { ms: Date.parse("2026-03-01T12:00:59.500Z") };
  const settings = { limits: { perAddress: 0, perKey: 50 }, limitsNow: () => new Date(clock.ms) };
  const one = await startApi(settings);
  const two = await startApi({ ...settings, databaseUrl: one.databaseUrl, redisPrefix: one.prefix });
  const { headers } = await makeMerchant(one);
  const expectAll = async (calls: number, left: number, reset: number) => {
    for (let made = 0; made < calls; made += 1) {
      const answer = await status(made % 2 ? one : two, headers);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("ratelimit-reset")).toBe(String(reset));
      expect(answer.headers.get("ratelimit-remaining")).toBe(String(left - made));
    }
  };
  await expectAll(40, 49, 1);
  clock.ms += 1_000;
  await expectAll(40, 49, 60);
  clock.ms += 30_000;
  await expectAll(10, 9, 30);
  for (const api of [one, two]) {
    const refused = await status(api, headers);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("30");
  }
});

test("an address has a limit, even without a valid key", async () => {
  const api = await startApi({ limits: { perAddress: 3, perKey: 0 }, trustedProxies: ["127.0.0.1"] });
  const guess = (ip: string) => api.get("/v1/payments", { "api-key": `svc_${Math.random()}`, ...from(ip) });
  for (let calls = 0; calls < 3; calls += 1) expect((await guess("203.0.113.1")).status).toBe(401);
  expect(await guess("203.0.113.1")).toMatchObject({ status: 429, body: { code: "rate_limited" } });
  expect((await guess("203.0.113.2")).status).toBe(401);
  // An address that the caller adds before the proxy's own entry changes nothing.
  expect((await guess("198.51.100.7, 203.0.113.1")).status).toBe(429);
});

test("requests for logos count against the limit of their address", async () => {
  const api = await startApi({ limits: { perAddress: 2 } });
  const fetchLogo = async () => (await api.get(`/logos/${"0".repeat(64)}`)).status;
  expect([await fetchLogo(), await fetchLogo(), await fetchLogo()]).toEqual([404, 404, 429]);
});

test("one address has a limit per payment on the gateway, and other addresses do not share it", async () => {
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
  for (let calls = 0; calls < 3; calls += 1) expect((await confirm(one, "203.0.113.1")).status).toBe(400);
  const refused = await confirm(one, "203.0.113.1");
  expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited" } });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect((await confirm(one, "203.0.113.2")).status).toBe(400);
  expect((await confirm(two, "203.0.113.1")).status).toBe(400);
});

test("a request for options counts against the payment's limit once for every five accounts, and for half of it at most", async () => {
  const api = await startApi({ limits: { perPayment: 20 } });
  const merchant = await makeMerchant(api);
  const id = await makePayment(api, merchant);
  const list = (count: number) =>
    api.post(`/v1/gateway/payment/${id}/options`, merchant.wallet, { accounts: addresses(count) });
  const onPage = (count: number) => api.post(`/checkout/${id}/options`, {}, { accounts: addresses(count) });
  for (const [answer, left] of [
    [await list(1), "19"],
    [await onPage(5), "18"],
    [await list(6), "16"],
    [await onPage(300), "6"],
    [await list(30), "0"],
  ] as const) {
    expect(answer.status).toBe(200);
    expect(answer.headers.get("ratelimit-remaining")).toBe(left);
  }
  for (const call of [list, onPage])
    expect(await call(1)).toMatchObject({ status: 429, body: { code: "rate_limited" } });
});

test.each([
  ["key", { perKey: 40 }, "headers", "/v1/gateway/payment"],
  ["address", { perAddress: 40 }, "wallet", "/v1/gateway/payment"],
  ["address", { perAddress: 40 }, "wallet", "/checkout"],
] as const)(
  "requests of many accounts over many payments reach the limit of their %s: %j, %s, %s",
  async (by, limits, sends, at) => {
    const api = await startApi({ limits });
    const merchant = await makeMerchant(api);
    const payments: string[] = [];
    for (let made = 0; made < 4; made += 1) payments.push(await makePayment(api, merchant));
    const list = (index: number, count: number) =>
      api.post(`${at}/${payments[index % 4]}/options`, merchant[sends], { accounts: addresses(count) });
    // 4 creations, 2 requests that count once, and 5 that count six times each.
    for (const index of [0, 1])
      expect((await list(index, 5)).headers.get("ratelimit-remaining")).toBe(String(35 - index));
    for (let index = 0; index < 5; index += 1) expect((await list(index, 30)).status).toBe(200);
    const refused = await list(6, 30);
    expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited" } });
    expect(refused.body["message"]).toContain(`from one ${by};`);
  },
);

test("only a trusted proxy may set the client address", async () => {
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
  expect(addressLimitKey(ip)).toBe(group);
});

test("without Redis, or with one that hangs, each process serves and counts by itself", inRealTime, async () => {
  const redis = await startPrivateRedis();
  const api = await startApi({ redisUrl: redis.url, limits: { perAddress: 0, perKey: 4 } });
  const { headers } = await makeMerchant(api);
  expect((await status(api, headers)).status).toBe(200);
  await redis.kill("SIGSTOP");
  const began = performance.now();
  for (let calls = 0; calls < 3; calls += 1) expect((await status(api, headers)).status).toBe(200);
  expect(performance.now() - began).toBeLessThan(5_000);
  expect((await status(api, headers)).status).toBe(429);
  await redis.kill("SIGCONT");
});
