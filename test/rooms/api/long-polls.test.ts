import { connect } from "node:net";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startPrivateRedis } from "../../support/private-services.ts";
import { waitFor } from "../../support/wait-for.ts";
import {
  type Answer,
  type Api,
  countHeld,
  makeMerchant,
  makePayment,
  movePayment,
  startApi,
  type TestMerchant,
} from "./start-api.ts";

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
const held = (count: number, on = api) => waitFor(async () => (await countHeld(on)) === count, { within: 5_000 });

/** The answer and how long it took from now, milliseconds. */
async function timed(asked: Promise<Answer>): Promise<{ answer: Answer; ms: number }> {
  const began = performance.now();
  const answer = await asked;
  return { answer, ms: performance.now() - began };
}

describe("a status that is held", () => {
  test("is answered as soon as the change is announced, on every path at once", async () => {
    const asked = [
      status(20_000),
      api.get(`/v1/payments/${id}/status?maxPollMs=20000`, shop.headers),
      api.get(`/v1/merchant/payment/${id}/status?maxPollMs=20000`, shop.headers),
    ];
    await held(3);
    await movePayment(api, id, "requires_action", "processing");
    await api.announce([id]);
    const { answer, ms } = await timed(Promise.all(asked).then(([first]) => first as Answer));
    // Below the second after which it would have been read anyway.
    expect(ms).toBeLessThan(900);
    expect(answer).toMatchObject({ status: 200, body: { status: "processing", isFinal: false, pollInMs: 1000 } });
    for (const other of await Promise.all(asked)) expect(other.body).toEqual(answer.body);
    await held(0);
  });

  test("is answered within a second or two when the message is lost", async () => {
    const asked = status(20_000);
    await held(1);
    await movePayment(api, id, "requires_action", "expired");
    const { answer, ms } = await timed(asked);
    expect(answer.body).toMatchObject({ status: "expired", isFinal: true, pollInMs: null });
    expect(ms).toBeLessThan(4_000);
  });

  test("is answered as it was when the time is up, and not before", async () => {
    const { answer, ms } = await timed(status(1_500));
    expect(answer).toMatchObject({ status: 200, body: { status: "requires_action", pollInMs: 1000 } });
    expect(ms).toBeGreaterThan(1_450);
    expect(ms).toBeLessThan(4_000);
  });

  test("is not woken by a message that nothing has changed", async () => {
    const asked = status(20_000);
    await held(1);
    const before = api.statements.count;
    await api.announce([id]);
    await waitFor(() => api.statements.count > before, { within: 5_000, what: "the read after the message" });
    expect(await countHeld(api)).toBe(1);
    await movePayment(api, id, "requires_action", "cancelled");
    await api.announce([id]);
    expect((await asked).body.status).toBe("cancelled");
  });

  test("is answered at once when the payment is final already, or without a wait", async () => {
    expect((await timed(status(0))).ms).toBeLessThan(2_000);
    await movePayment(api, id, "requires_action", "expired");
    expect((await timed(status(20_000))).ms).toBeLessThan(2_000);
  });

  test("is answered at once when there is no such payment", async () => {
    const asked = api.get(`/v1/gateway/payment/pay_${"0".repeat(32)}/status?maxPollMs=20000`, shop.wallet);
    const { answer, ms } = await timed(asked);
    expect(answer.body.code).toBe("payment_not_found");
    expect(ms).toBeLessThan(2_000);
    expect(await countHeld(api)).toBe(0);
  });

  test.each([
    ["9223372036854775807", 25_000],
    ["25001", 25_000],
    ["24999", 24_999],
  ])("that is asked for %s ms is held for %i at most", async (asked, most) => {
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
    await held(0);
  });

  test("gives up its place when the client leaves", async () => {
    const leave = new AbortController();
    const asked = status(20_000, leave.signal);
    await held(1);
    leave.abort();
    await expect(asked).rejects.toThrow();
    await held(0);
    const ends = (await api.metrics.longPollEnds.get()).values;
    expect(ends.find(({ labels }) => labels.reason === "gone")?.value).toBeGreaterThanOrEqual(1);
  });

  test("costs one query a second, however many wait", async () => {
    const leave = new AbortController();
    const asked = Array.from({ length: 50 }, () => status(20_000, leave.signal).catch(() => undefined));
    await held(50);
    const from = api.statements.count;
    await waitFor(() => api.statements.count >= from + 2, { within: 5_000 });
    const began = performance.now();
    await waitFor(() => api.statements.count >= from + 4, { within: 5_000 });
    // Two more reads were a second apart each: had every waiter read for itself, they would have come at once.
    expect(performance.now() - began).toBeGreaterThan(900);
    leave.abort();
    await Promise.all(asked);
  });

  test("counts in durations without the time it was held", async () => {
    const counted = async (name: string, le?: number) =>
      (await api.metrics.httpSeconds.get()).values.find(
        ({ metricName, labels }) =>
          metricName === `pay_http_request_duration_seconds_${name}` &&
          labels.route === "/v1/gateway/payment/:id/status" &&
          (le === undefined || (labels as { le?: number }).le === le),
      )?.value ?? 0;
    const before = await counted("count");
    await status(1_200);
    await waitFor(async () => (await counted("count")) > before, { within: 5_000 });
    expect(await counted("bucket", 1)).toBe(await counted("count"));
  });
});

describe("an ingress whose Redis goes away", () => {
  test("serves all the same, and its held answers take a second", async () => {
    const redis = await startPrivateRedis();
    const alone = await startApi({ redisUrl: redis.url });
    const merchant = await makeMerchant(alone);
    await redis.stop();
    const payment = await makePayment(alone, merchant);
    const asked = alone.get(`/v1/payments/${payment}/status?maxPollMs=20000`, merchant.headers);
    await held(1, alone);
    await movePayment(alone, payment, "requires_action", "expired");
    await alone.announce([payment]);
    const { answer, ms } = await timed(asked);
    expect(answer).toMatchObject({ status: 200, body: { status: "expired" } });
    expect(ms).toBeLessThan(4_000);
  });

  test("hears messages again when it is back", async () => {
    const redis = await startPrivateRedis();
    const alone = await startApi({ redisUrl: redis.url });
    const merchant = await makeMerchant(alone);
    const payment = await makePayment(alone, merchant);
    await redis.stop();
    await redis.start();
    const woken: string[] = [];
    alone.subscriber.on("message", (_channel, message) => woken.push(message));
    await waitFor(() => alone.announce([payment]).then(() => woken.includes(payment)), { within: 10_000 });
  });
});

describe("draining", () => {
  test("answers all who wait at once with the present status, and holds nobody from then on", async () => {
    const leaving = await startApi();
    const merchant = await makeMerchant(leaving);
    const payment = await makePayment(leaving, merchant);
    const path = `/v1/payments/${payment}/status?maxPollMs=20000`;
    const asked = Array.from({ length: 20 }, () => leaving.get(path, merchant.headers));
    await held(20, leaving);
    leaving.waiters.drain();
    const answers = await timed(Promise.all(asked).then(([first]) => first as Answer));
    expect(answers.ms).toBeLessThan(2_000);
    for (const answer of await Promise.all(asked)) {
      expect(answer).toMatchObject({ status: 200, body: { status: "requires_action" } });
      expect(answer.headers.get("connection")).toBe("close");
    }
    const late = await timed(leaving.get(path, merchant.headers));
    expect(late.answer.body.status).toBe("requires_action");
    expect(late.ms).toBeLessThan(2_000);
  });

  test("closing answers them too, and is not held up by kept connections", async () => {
    const leaving = await startApi();
    const merchant = await makeMerchant(leaving);
    const payment = await makePayment(leaving, merchant);
    const asked = leaving.get(`/v1/payments/${payment}/status?maxPollMs=20000`, merchant.headers);
    await held(1, leaving);
    const began = performance.now();
    await leaving.app.close();
    expect(performance.now() - began).toBeLessThan(2_000);
    expect((await asked).body.status).toBe("requires_action");
  });

  test("closing is not held up by connections on which nothing has been asked", async () => {
    const leaving = await startApi();
    const opened = Promise.withResolvers<void>();
    const socket = connect(Number(new URL(leaving.url).port), "127.0.0.1", () => opened.resolve());
    socket.on("error", () => undefined);
    await opened.promise;
    const count = () => new Promise<number>((resolve) => leaving.app.server.getConnections((_error, n) => resolve(n)));
    await waitFor(async () => (await count()) === 1, { within: 5_000 });
    const began = performance.now();
    await leaving.app.close();
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});
