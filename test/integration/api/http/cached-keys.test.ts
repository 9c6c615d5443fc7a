import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { inRealTime } from "../../../support/in-real-time.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { type Api, makeKey, makeMerchant, makePayment, startApi } from "../start-api.ts";

// Two processes of one service. The tests change rows without any message, as when Redis is cut off.
const api = await startApi({ trustedProxies: ["127.0.0.1"] });
const twin = await startApi({ databaseUrl: api.databaseUrl, trustedProxies: ["127.0.0.1"] });
const shop = await makeMerchant(api);
const path = `/v1/payments/${await makePayment(api, shop)}`;
const newKey = () =>
  makeKey(api, { accountId: shop.accountId, mode: "test", scopes: ["payments:read", "payments:write", "keys"] });
const ask = async (on: Api, key: string) => {
  const headers = { "api-key": key, "merchant-id": shop.merchantId, "x-forwarded-for": "192.0.2.7" };
  return (await on.get(path, headers)).status;
};
const update = (id: string, set: object) => api.db.updateTable("api_key").set(set).where("id", "=", id).execute();

/** Asks both processes without a pause while a key changes. Returns how long the key still worked, milliseconds. */
async function race(key: string, change: () => Promise<unknown>, ends: number): Promise<number> {
  let changedAt = Number.POSITIVE_INFINITY;
  let workedUntil = 0;
  const askUntilEnd = async (on: Api) => {
    for (;;) {
      const began = performance.now();
      const status = await ask(on, key);
      if (status === ends) return;
      expect(status).toBe(200);
      // The time at which the request was sent, because its response may be late.
      workedUntil = Math.max(workedUntil, began);
      if (began > changedAt + 20_000) throw new Error("the key works for ever");
    }
  };
  const asking = Promise.all([api, twin, api, twin].map(askUntilEnd));
  await waitFor(() => workedUntil > 0, { within: 20_000 });
  await change();
  changedAt = performance.now();
  await asking;
  return workedUntil - changedAt;
}

describe("a key that is in use on two processes, while no message arrives", () => {
  const past = () => new Date(Date.now() - 1);
  test.each([
    ["is revoked", () => ({ revoked_at: new Date() }), 401],
    ["gets an earlier end", () => ({ expires_at: past() }), 401],
    ["loses its scope", () => ({ scopes: ["keys"] }), 403],
    ["is restricted to other addresses", () => ({ allowed_cidrs: ["198.51.100.0/24"] }), 403],
    ["is restricted to other merchants", () => ({ merchant_ids: [`mrch_${"0".repeat(32)}`] }), 404],
    ["gets another secret", () => ({ hash: randomBytes(32) }), 401],
  ])("stops within a second when it %s", inRealTime, async (_how, set, status) => {
    const { id, key } = await newKey();
    expect(await race(key, () => update(id, set()), status)).toBeLessThan(1_000);
  });

  test("an app id stops within a second when it is revoked", inRealTime, async () => {
    const other = await makeMerchant(api);
    const gateway = `/v1/gateway/payment/${await makePayment(api, other)}/status`;
    let workedUntil = Number.NEGATIVE_INFINITY;
    const works = async () => {
      const began = performance.now();
      const { status } = await twin.get(gateway, other.wallet);
      // The time at which the request was sent, because its response may be late.
      if (status === 200) workedUntil = began;
      return status === 200;
    };
    expect(await works()).toBe(true);
    await api.db.updateTable("app_id").set({ revoked_at: new Date() }).execute();
    const revokedAt = performance.now();
    await waitFor(async () => !(await works()), { within: 20_000 });
    expect(workedUntil - revokedAt).toBeLessThan(1_000);
  });
});

test("a key that expires while it is cached stops at that moment", async () => {
  const { id, key } = await newKey();
  expect(await ask(api, key)).toBe(200);
  const expiresAt = Date.now() + 1_500;
  await update(id, { expires_at: new Date(expiresAt) });
  let workedUntil = 0;
  const isOver = async () => {
    const began = Date.now();
    const status = await ask(api, key);
    if (status === 200) workedUntil = began;
    return status === 401;
  };
  await waitFor(isOver, { within: 20_000 });
  expect(workedUntil).toBeLessThan(expiresAt + 100);
  expect(await ask(api, key)).toBe(401);
});

test("a key in use costs no statement, and operations on keys read it each time", async () => {
  const { id, key } = await newKey();
  await ask(api, key);
  // The read of the payment is the only statement, unless the cached key reached its age meanwhile.
  const costs: number[] = [];
  for (let count = 0; count < 5; count += 1) {
    const before = api.statements.count;
    await ask(api, key);
    costs.push(api.statements.count - before);
  }
  expect(Math.min(...costs)).toBeLessThanOrEqual(1);
  await update(id, { revoked_at: new Date() });
  expect((await api.get("/v1/api-keys", { "api-key": key })).status).toBe(401);
});
