import { beforeEach, describe, expect, test } from "vitest";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { inRealTime } from "../../../support/in-real-time.ts";
import { startPrivateRedis } from "../../../support/private-services.ts";
import { testActor } from "../../../support/test-actor.ts";
import { waitFor } from "../../../support/wait-for.ts";
import {
  type Api,
  makeKey,
  makeMerchant,
  makePayment,
  movePayment,
  movePaymentSilently,
  startApi,
  type TestMerchant,
} from "../start-api.ts";

// Two processes of one service, which share Redis.
const api = await startApi();
const twin = await startApi({ databaseUrl: api.databaseUrl, redisPrefix: api.prefix });
const shop = await makeMerchant(api);
let id: string;
beforeEach(async () => {
  id = await makePayment(api, shop);
});

const ask = async (on: Api, headers: Record<string, string> = shop.headers) =>
  (await on.get(`/v1/payments/${id}/status`, headers)).body["status"];
const order = ["requires_action", "processing", "succeeded"];

/** Counts the statements of one request, with those of the process itself that happen to run meanwhile. */
async function countStatements(on: Api, asked: () => Promise<unknown>): Promise<number> {
  const before = on.statements.count;
  await asked();
  return on.statements.count - before;
}
/** Asks until a request costs no statement, so that the status and the key are kept. */
const warm = (on: Api) => waitFor(async () => (await countStatements(on, () => ask(on))) === 0, { within: 20_000 });

describe("the status of a payment", () => {
  test("an unchanged status costs no statement", inRealTime, async () => {
    await warm(api);
    const began = performance.now();
    const statements = await countStatements(api, async () => {
      for (let count = 0; count < 200; count += 1) expect(await ask(api)).toBe("requires_action");
    });
    // Once a second the process looks for moves, and reads the key again.
    expect(statements).toBeLessThanOrEqual(4 + (3 * (performance.now() - began)) / 1_000);
  });

  test("an announced change is seen by the next request on every process", async () => {
    await Promise.all([warm(api), warm(twin)]);
    await movePayment(api, id, "requires_action", "processing");
    expect(await Promise.all([ask(api), ask(twin)])).toEqual(["processing", "processing"]);
    await Promise.all([warm(api), warm(twin)]);
    await movePayment(api, id, "processing", "succeeded");
    expect(await Promise.all([ask(twin), ask(api)])).toEqual(["succeeded", "succeeded"]);
  });

  test.each([
    ["announced", movePayment],
    ["not announced", movePaymentSilently],
  ])(
    "a caller who alternates between processes never sees an older status when changes are %s",
    inRealTime,
    async (_, move) => {
      await Promise.all([warm(api), warm(twin)]);
      let over = false;
      const callers = Array.from({ length: 8 }, async (_, caller) => {
        const seen: number[] = [];
        for (let pass = caller; !over; pass += 1) seen.push(order.indexOf(String(await ask(pass % 2 ? api : twin))));
        return seen;
      });
      const seenBy = async (on: Api, status: string) =>
        waitFor(async () => (await ask(on)) === status, { within: 20_000, what: `${status} is seen` });
      try {
        await move(api, id, "requires_action", "processing");
        await seenBy(api, "processing");
        await seenBy(twin, "processing");
        await move(api, id, "processing", "succeeded");
        await seenBy(twin, "succeeded");
        await seenBy(api, "succeeded");
      } finally {
        over = true;
      }
      for (const seen of await Promise.all(callers)) expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    },
  );

  test("a process that reads an unannounced change notifies the other one before it shows it", inRealTime, async () => {
    await warm(twin);
    await movePaymentSilently(api, id, "requires_action", "processing");
    // This process has never read the payment, and the other one keeps its former status.
    expect(await ask(api)).toBe("processing");
    expect(await ask(twin)).toBe("processing");
  });

  test.each([
    ["the payment", () => `/v1/payments/${id}`],
    ["the list of payments", () => "/v1/merchants/payments"],
    ["the payment of the gateway", () => `/v1/gateway/payment/${id}`],
    ["the checkout page", () => `/${id}`],
    ["the status of the checkout page", () => `/checkout/${id}/status`],
  ])("%s shows an unannounced change only once the other process knows it", inRealTime, async (_title, path) => {
    await Promise.all([warm(api), warm(twin)]);
    await movePaymentSilently(api, id, "requires_action", "processing");
    const shown = await fetch(`${api.url}${path()}`, { headers: shop.headers });
    expect(await shown.text()).toContain("processing");
    expect(await Promise.all([ask(twin), ask(api)])).toEqual(["processing", "processing"]);
  });

  test("a long poll that returns an unannounced change notifies the other process first", inRealTime, async () => {
    const held = api.get(`/v1/payments/${id}/status?maxPollMs=20000`, shop.headers);
    await warm(twin);
    await movePaymentSilently(api, id, "requires_action", "processing");
    expect((await held).body["status"]).toBe("processing");
    expect(await ask(twin)).toBe("processing");
  });
});

describe("a kept status", () => {
  const missing = { status: 404, body: { code: "payment_not_found" } };
  const path = () => `/v1/payments/${id}/status`;
  let other: TestMerchant;
  beforeEach(async () => {
    other = await makeMerchant(api);
    await warm(api);
  });

  test("is not returned to another account, merchant or mode", async () => {
    expect(await api.get(path(), other.headers)).toMatchObject(missing);
    expect(await api.get(path(), { ...shop.headers, "merchant-id": other.merchantId })).toMatchObject(missing);
    const live = await makeKey(api, { accountId: shop.accountId, mode: "live", scopes: ["payments:read", "gateway"] });
    expect(await api.get(path(), { ...shop.headers, "api-key": live.key })).toMatchObject(missing);
    expect(await api.get(`/v1/gateway/payment/${id}/status`, { "api-key": live.key })).toMatchObject(missing);
  });

  test("is not returned to a key that is restricted to other merchants", async () => {
    const { accountId } = shop;
    const details = { accountId, mode: "test", name: "Second shop", email: "second@example.test" } as const;
    const onlyMerchants = [(await createMerchant(api.deps, { actor: testActor, ...details })).id];
    const { key } = await makeKey(api, {
      accountId: shop.accountId,
      mode: "test",
      scopes: ["payments:read"],
      onlyMerchants,
    });
    expect(await api.get(path(), { ...shop.headers, "api-key": key })).toMatchObject(missing);
  });
});

test("a process that is cut off from Redis reads every status from the database", async () => {
  const redis = await startPrivateRedis();
  const alone = await startApi({ databaseUrl: api.databaseUrl, redisUrl: redis.url });
  await warm(alone);
  await redis.stop();
  expect(await ask(alone)).toBe("requires_action");
  await movePayment(api, id, "requires_action", "processing");
  expect(await ask(alone)).toBe("processing");
  await movePayment(api, id, "processing", "succeeded");
  expect(await ask(alone)).toBe("succeeded");
});
