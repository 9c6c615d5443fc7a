import { expect, test } from "vitest";
import { startTcpRelay } from "../../../support/tcp-relay.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { makeMerchant, startApi } from "../start-api.ts";

/** Starts an api whose connections to Postgres a test can cut. */
async function startBehindRelay() {
  const relay = await startTcpRelay({});
  let port = 0;
  const relayDatabase = async (databaseUrl: string) => {
    const url = new URL(databaseUrl);
    port = Number(url.port);
    relay.to(port);
    url.port = String(relay.port);
    return url.href;
  };
  const api = await startApi({ relayDatabase });
  return { api, merchant: await makeMerchant(api), cut: () => relay.to(undefined), mend: () => relay.to(port) };
}

test("while Postgres is unavailable every request gets 503 with Retry-After, and its repetition creates one payment", async () => {
  const { api, merchant, cut, mend } = await startBehindRelay();
  const headers = { ...merchant.headers, "idempotency-key": "order-1" };
  const order = { amount: { unit: "iso4217/USD", value: "500" } };
  await api.get("/v1/payments", merchant.headers);
  cut();
  const answers = await Promise.all([
    api.post("/v1/payments", headers, order),
    api.get("/v1/payments", merchant.headers),
    api.get("/v1/merchants", { "api-key": "unknown" }),
  ]);
  for (const { status, headers: sent, body } of answers) {
    expect({ status, retryAfter: sent.get("retry-after"), code: body["code"] }).toEqual({
      status: 503,
      retryAfter: "1",
      code: "internal_error",
    });
    expect(body["message"]).toContain("Idempotency-Key");
  }
  expect(api.lines.filter((line) => JSON.parse(line).level === "error")).toEqual([]);
  mend();
  expect((await api.post("/v1/payments", headers, order)).status).toBe(201);
  expect((await api.get("/v1/payments", merchant.headers)).body).toMatchObject({ data: [{}] });
});

test("a load balancer learns from the api's own port that a process lives and is not ready", async () => {
  const { api, cut, mend } = await startBehindRelay();
  const probe = async (path: string, method = "GET") => (await fetch(`${api.url}${path}`, { method })).status;
  expect([await probe("/readyz"), await probe("/readyz", "HEAD"), await probe("/livez")]).toEqual([200, 200, 200]);
  cut();
  await waitFor(async () => (await probe("/readyz")) === 503, { within: 20_000 });
  expect(await probe("/livez")).toBe(200);
  mend();
  await waitFor(async () => (await probe("/readyz")) === 200, { within: 20_000 });
});

test("probes by strangers cause no more than two statements a second", async () => {
  const api = await startApi();
  const began = performance.now();
  await Promise.all(Array.from({ length: 200 }, () => fetch(`${api.url}/readyz`)));
  const halfSeconds = Math.ceil((performance.now() - began) / 500);
  expect(api.readinessChecks.count).toBeGreaterThan(0);
  expect(api.readinessChecks.count).toBeLessThanOrEqual(halfSeconds);
});
