import { connect } from "node:net";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startPrivateRedis } from "../../../support/private-services.ts";
import { waitFor } from "../../../support/wait-for.ts";
import {
  type Answer,
  type Api,
  countHeld,
  makeMerchant,
  makePayment,
  movePaymentSilently as movePayment,
  startApi,
  type TestMerchant,
} from "../start-api.ts";

let api: Api;
let shop: TestMerchant;
let id: string;

beforeAll(async () => {
  api = await startApi();
  shop = await makeMerchant(api);
});
beforeEach(async () => {
  id = await makePayment(api, shop);
});

const status = (wait: number, signal?: AbortSignal) =>
  api.get(`/v1/gateway/payment/${id}/status?maxPollMs=${wait}`, shop.wallet, signal);
const waitForHeld = (count: number, on = api) =>
  waitFor(async () => (await countHeld(on)) === count, { within: 20_000 });

/** Returns the response and how long it took from now, in milliseconds. */
async function measure(asked: Promise<Answer>): Promise<{ answer: Answer; ms: number }> {
  const began = performance.now();
  const answer = await asked;
  return { answer, ms: performance.now() - began };
}

describe("a long poll", () => {
  test("a long poll returns as soon as the change is announced, on every path", async () => {
    const asked = [
      status(20_000),
      api.get(`/v1/payments/${id}/status?maxPollMs=20000`, shop.headers),
      api.get(`/v1/merchant/payment/${id}/status?maxPollMs=20000`, shop.headers),
    ];
    await waitForHeld(3);
    // Without an event, which the api would find within a second also without the announcement.
    await api.db.updateTable("payment").set({ state: "processing", state_version: 1 }).where("id", "=", id).execute();
    await api.publishPaymentChanges([id]);
    const { answer, ms } = await measure(Promise.all(asked).then(([first]) => first as Answer));
    expect(ms).toBeLessThan(10_000);
    expect(answer).toMatchObject({ status: 200, body: { status: "processing", isFinal: false, pollInMs: 1000 } });
    for (const other of await Promise.all(asked)) expect(other.body).toEqual(answer.body);
    await waitForHeld(0);
  });

  test("a long poll returns within a few seconds when the message is lost", async () => {
    const asked = status(20_000);
    await waitForHeld(1);
    await movePayment(api, id, "requires_action", "expired");
    const { answer, ms } = await measure(asked);
    expect(answer.body).toMatchObject({ status: "expired", isFinal: true, pollInMs: null });
    expect(ms).toBeLessThan(10_000);
  });

  test("a long poll returns the unchanged status at its timeout, and not earlier", async () => {
    const { answer, ms } = await measure(status(1_500));
    expect(answer).toMatchObject({ status: 200, body: { status: "requires_action", pollInMs: 1000 } });
    expect(ms).toBeGreaterThan(1_450);
    expect(ms).toBeLessThan(10_000);
  });

  test("a long poll does not return on a message without a change", async () => {
    const asked = status(20_000);
    await waitForHeld(1);
    const before = api.statements.count;
    await api.publishPaymentChanges([id]);
    // One of two statements may be the read of all moves, which happens once a second.
    await waitFor(() => api.statements.count >= before + 2, { within: 20_000, what: "the read after the message" });
    expect(await countHeld(api)).toBe(1);
    await movePayment(api, id, "requires_action", "cancelled");
    await api.publishPaymentChanges([id]);
    expect((await asked).body["status"]).toBe("cancelled");
  });

  test("a long poll returns at once when the payment is final or the wait is zero", async () => {
    expect((await measure(status(0))).ms).toBeLessThan(10_000);
    await movePayment(api, id, "requires_action", "expired");
    expect((await measure(status(20_000))).ms).toBeLessThan(10_000);
  });

  test("a long poll returns at once when the payment does not exist", async () => {
    const asked = api.get(`/v1/gateway/payment/pay_${"0".repeat(32)}/status?maxPollMs=20000`, shop.wallet);
    const { answer, ms } = await measure(asked);
    expect(answer.body["code"]).toBe("payment_not_found");
    expect(ms).toBeLessThan(10_000);
    expect(await countHeld(api)).toBe(0);
  });

  test.each([
    ["9223372036854775807", 25_000],
    ["25001", 25_000],
    ["24999", 24_999],
  ])("a long poll with maxPollMs %s is held for at most %i ms", async (asked, most) => {
    const { open } = api.waiters;
    const leave = new AbortController();
    const seen = Promise.withResolvers<number>();
    api.waiters.open = (args) => {
      seen.resolve(args.ms);
      return open(args);
    };
    try {
      const answer = api.get(`/v1/gateway/payment/${id}/status?maxPollMs=${asked}`, shop.wallet, leave.signal);
      expect(await seen.promise).toBe(most);
      leave.abort();
      await expect(answer).rejects.toThrow();
    } finally {
      api.waiters.open = open;
    }
    await waitForHeld(0);
  });

  test("a long poll gives up its place when the client disconnects", async () => {
    const leave = new AbortController();
    const asked = status(20_000, leave.signal);
    await waitForHeld(1);
    leave.abort();
    await expect(asked).rejects.toThrow();
    await waitForHeld(0);
    const ends = (await api.metrics.longPollEnds.get()).values;
    expect(ends.find(({ labels }) => labels.reason === "gone")?.value).toBeGreaterThanOrEqual(1);
  });

  test("any number of long polls costs one query per second", async () => {
    const leave = new AbortController();
    const asked = Array.from({ length: 50 }, () => status(20_000, leave.signal).catch(() => undefined));
    await waitForHeld(50);
    const from = api.statements.count;
    await waitFor(() => api.statements.count >= from + 2, { within: 20_000 });
    const began = performance.now();
    await waitFor(() => api.statements.count >= from + 4, { within: 20_000 });
    // Two more reads were a second apart: separate reads per long poll would have come at once.
    expect(performance.now() - began).toBeGreaterThan(900);
    leave.abort();
    await Promise.all(asked);
  });

  test("the request duration excludes the time that a long poll was held", async () => {
    const read = async (name: "count" | "sum") =>
      (await api.metrics.httpSeconds.get()).values.find(
        ({ metricName, labels }) =>
          metricName === `pay_http_request_duration_seconds_${name}` &&
          labels.route === "/v1/gateway/payment/:id/status",
      )?.value ?? 0;
    // The requests of earlier tests are over.
    await waitForHeld(0);
    const before = { count: await read("count"), sum: await read("sum") };
    const { ms } = await measure(status(1_200));
    await waitFor(async () => (await read("count")) > before.count, { within: 20_000 });
    expect((await read("sum")) - before.sum).toBeLessThan((ms - 1_000) / 1_000);
  });
});

describe("an api whose Redis fails", () => {
  test("an api without Redis still serves, and its long polls return within seconds", async () => {
    const redis = await startPrivateRedis();
    const alone = await startApi({ redisUrl: redis.url });
    const merchant = await makeMerchant(alone);
    await redis.stop();
    const payment = await makePayment(alone, merchant);
    const asked = alone.get(`/v1/payments/${payment}/status?maxPollMs=20000`, merchant.headers);
    await waitForHeld(1, alone);
    await movePayment(alone, payment, "requires_action", "expired");
    await alone.publishPaymentChanges([payment]);
    const { answer, ms } = await measure(asked);
    expect(answer).toMatchObject({ status: 200, body: { status: "expired" } });
    expect(ms).toBeLessThan(10_000);
  });

  test("an api receives messages again when Redis is back", async () => {
    const redis = await startPrivateRedis();
    const alone = await startApi({ redisUrl: redis.url });
    const merchant = await makeMerchant(alone);
    const payment = await makePayment(alone, merchant);
    await redis.stop();
    await redis.start();
    const woken: string[] = [];
    alone.subscriber.on("smessage", (_channel, message) => woken.push(message));
    await waitFor(() => alone.publishPaymentChanges([payment]).then(() => woken.includes(payment)), { within: 30_000 });
  });
});

describe("draining", () => {
  test("draining returns all long polls at once with the current status and holds no more", async () => {
    const leaving = await startApi();
    const merchant = await makeMerchant(leaving);
    const payment = await makePayment(leaving, merchant);
    const path = `/v1/payments/${payment}/status?maxPollMs=20000`;
    const asked = Array.from({ length: 20 }, () => leaving.get(path, merchant.headers));
    await waitForHeld(20, leaving);
    leaving.waiters.drain();
    const answers = await measure(Promise.all(asked).then(([first]) => first as Answer));
    expect(answers.ms).toBeLessThan(10_000);
    for (const answer of await Promise.all(asked)) {
      expect(answer).toMatchObject({ status: 200, body: { status: "requires_action" } });
      expect(answer.headers.get("connection")).toBe("close");
    }
    const late = await measure(leaving.get(path, merchant.headers));
    expect(late.answer.body["status"]).toBe("requires_action");
    expect(late.ms).toBeLessThan(10_000);
  });

  test("closing returns the long polls too and does not wait for kept-alive connections", async () => {
    const leaving = await startApi();
    const merchant = await makeMerchant(leaving);
    const payment = await makePayment(leaving, merchant);
    const asked = leaving.get(`/v1/payments/${payment}/status?maxPollMs=20000`, merchant.headers);
    await waitForHeld(1, leaving);
    const began = performance.now();
    await leaving.app.close();
    expect(performance.now() - began).toBeLessThan(10_000);
    expect((await asked).body["status"]).toBe("requires_action");
  });

  test("closing does not wait for connections without a request", async () => {
    const leaving = await startApi();
    const opened = Promise.withResolvers<void>();
    const socket = connect(Number(new URL(leaving.url).port), "127.0.0.1", () => opened.resolve());
    socket.on("error", () => undefined);
    await opened.promise;
    const count = () => new Promise<number>((resolve) => leaving.app.server.getConnections((_error, n) => resolve(n)));
    await waitFor(async () => (await count()) === 1, { within: 20_000 });
    const began = performance.now();
    await leaving.app.close();
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});
