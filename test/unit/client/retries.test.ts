import { afterEach, describe, expect, test, vi } from "vitest";
import {
  ConnectionError,
  GatewayClient,
  InvalidRequestError,
  PaymentClient,
  RateLimitError,
  WaitTimeoutError,
} from "../../../client/index.ts";
import { cutOff, hang, json, reset, startScriptedService } from "./scripted-service.ts";

const service = await startScriptedService();
const { baseUrl, requests, script } = service;
const client = new PaymentClient({ baseUrl, apiKey: "svc_test_1", merchantId: "mrch_1" });
const order = { referenceId: "order-1", amount: { unit: "iso4217/USD", value: "1250" } };
const limited = (seconds: string) =>
  json(429, { code: "rate_limited", message: "slow down" }, { "retry-after": seconds });
const failed = json(500, { code: "internal_error", message: "failed" });
const keys = () => requests.map(({ headers }) => headers["idempotency-key"]);

describe("a call that the service may get twice", () => {
  test.each([
    ["a lost connection", reset],
    ["a response that is cut off", cutOff],
    ["a 500", failed],
    ["a 502 of a proxy", json(502, {})],
    ["a 503 with Retry-After", json(503, { code: "internal_error", message: "later" }, { "retry-after": "0" })],
    ["a 429 with Retry-After", limited("0")],
  ])("is repeated after %s", async (_name, answer) => {
    script(answer, json(200, { status: "succeeded" }));
    expect(await client.payments.get("pay_1")).toEqual({ status: "succeeded" });
    expect(requests).toHaveLength(2);
  });

  test("is repeated three times by default, and as often as the client is told", async () => {
    script(reset);
    await expect(client.payments.get("pay_1")).rejects.toThrow(ConnectionError);
    expect(requests).toHaveLength(4);
    script(reset);
    await expect(new PaymentClient({ baseUrl, apiKey: "k", maxRetries: 0 }).payments.get("pay_1")).rejects.toThrow();
    expect(requests).toHaveLength(1);
  });

  test("waits at least as long as Retry-After says, and does not wait for minutes", async () => {
    script(limited("1"), json(200, {}));
    const startedAt = performance.now();
    await client.payments.get("pay_1");
    expect(performance.now() - startedAt).toBeGreaterThan(1000);
    script(limited("600"));
    const refused = client.payments.get("pay_1");
    await expect(refused).rejects.toThrow(RateLimitError);
    await expect(refused).rejects.toMatchObject({ retryAfterMs: 600_000, status: 429 });
    expect(requests).toHaveLength(1);
  });

  test("sends the same bytes again, and nothing when its body cannot be sent", async () => {
    const body = { ...order };
    const sent = () => requests.map((request) => JSON.parse(request.body).referenceId);
    script(reset, json(201, {}));
    const creating = client.payments.create(body);
    body.referenceId = "order-2";
    await creating;
    expect(sent()).toEqual(["order-1", "order-1"]);
    script(json(201, {}));
    const wrong = { ...order, amount: { ...order.amount, value: 1250n as unknown as string } };
    await expect(client.payments.create(wrong)).rejects.toThrow(TypeError);
    expect(requests).toHaveLength(0);
  });

  test("is not repeated after an answer that a repetition cannot change", async () => {
    script(json(400, { code: "params_validation", message: "amount.value: expected digits" }));
    await expect(client.payments.create(order)).rejects.toThrow(InvalidRequestError);
    script(json(429, { code: "rate_limited", message: "no time is named" }));
    await expect(client.payments.create(order)).rejects.toThrow(RateLimitError);
    expect(requests).toHaveLength(1);
  });
});

describe("an idempotency key", () => {
  test("is made for each creation, and its retries send the same one", async () => {
    script(reset, failed, json(201, { id: "pay_1" }));
    await client.payments.create(order);
    const [first] = keys();
    expect(keys()).toEqual([first, first, first]);
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    script(json(201, {}));
    await client.payments.create(order);
    await client.refunds.create({ paymentId: "pay_1" });
    await client.merchants.create({ merchantName: "Shop", merchantEmail: "shop@example.com" });
    expect(new Set([first, ...keys()]).size).toBe(4);
  });

  test("may be the caller's own", async () => {
    script(json(201, {}));
    await client.payments.create(order, { idempotencyKey: "order-1" });
    expect(keys()).toEqual(["order-1"]);
    await client.payments.create(order, { idempotencyKey: "order 1" });
    expect(keys()).toEqual(["order-1", "order 1"]);
    for (const wrong of [" order", "order ", "", "ordér", "x".repeat(256)])
      expect(() => client.payments.create(order, { idempotencyKey: wrong })).toThrow(
        "idempotencyKey: expected 1 to 255 printable ASCII characters without blanks at the ends",
      );
  });

  test("is the caller's own for a part of a refund, because a new one at each run of a job would refund another part", async () => {
    script(json(201, {}));
    const part = { paymentId: "pay_1", amount: { unit: "iso4217/USD", value: "500" } };
    // @ts-expect-error the options are missing
    expect(() => client.refunds.create(part)).toThrow("idempotencyKey");
    // @ts-expect-error the key is missing
    expect(() => client.refunds.create(part, { merchantId: "mrch_1" })).toThrow("idempotencyKey");
    expect(requests).toHaveLength(0);
    await client.refunds.create(part, { idempotencyKey: "refund-1" });
    await client.refunds.create({ paymentId: "pay_1" });
    expect(keys()).toEqual(["refund-1", expect.stringMatching(/^[0-9a-f]{32}$/)]);
  });

  test("is in the error of its creation, so that a later call can repeat it", async () => {
    for (const answer of [reset, failed, limited("600")]) {
      script(answer);
      const error = await client.payments.create(order).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ idempotencyKey: keys()[0] });
      await expect(client.payments.get("pay_1")).rejects.toMatchObject({ idempotencyKey: undefined });
    }
  });
});

test("a change without an idempotency key is sent once, because its repetition could act twice", async () => {
  script(reset);
  await expect(client.webhookEndpoints.rotateSecret("whe_1")).rejects.toThrow(ConnectionError);
  await expect(client.payments.simulate("pay_1", "failed")).rejects.toThrow(ConnectionError);
  await expect(client.settlements.update("mrch_1", "crypto_1", "eip155:1:0x")).rejects.toThrow(ConnectionError);
  expect(requests.map(({ method }) => method)).toEqual(["POST", "POST", "PUT"]);
});

test("a wallet's calls are repeated, because the gateway acts once", async () => {
  const gateway = new GatewayClient({ baseUrl, appId: "app" });
  script(reset, json(200, { status: "processing" }));
  await gateway.confirm("pay_1", { optionId: "opt", results: [] });
  expect(requests.map(({ url }) => url)).toEqual(Array(2).fill("/v1/gateway/payment/pay_1/confirm"));
  expect(requests[0]?.headers["client-id"]).toBe(requests[1]?.headers["client-id"]);
});

describe("a limit of time", () => {
  test("ends each attempt that gets no answer", async () => {
    script(hang, json(200, { status: "succeeded" }));
    expect(await client.payments.get("pay_1", { timeoutMs: 100 })).toEqual({ status: "succeeded" });
    script(hang);
    const once = new PaymentClient({ baseUrl, apiKey: "k", timeoutMs: 50, maxRetries: 0 });
    await expect(once.payments.get("pay_1")).rejects.toMatchObject({ code: "timeout", name: "ConnectionError" });
  });

  test("may be missing, and is not longer than a timer can be", async () => {
    for (const timeoutMs of [Number.POSITIVE_INFINITY, 2 ** 40]) {
      script((response) => void setTimeout(() => json(200, { status: "succeeded", isFinal: true })(response), 50));
      const once = new PaymentClient({ baseUrl, apiKey: "k", timeoutMs, maxRetries: 0 });
      expect(await once.payments.get("pay_1")).toMatchObject({ status: "succeeded" });
      expect(await once.payments.waitUntilFinal("pay_1", { timeoutMs })).toMatchObject({ status: "succeeded" });
    }
    script(json(200, {}));
    for (const timeoutMs of [Number.NaN, -1, "1000" as unknown as number]) {
      await expect(client.payments.get("pay_1", { timeoutMs })).rejects.toThrow("timeoutMs");
      await expect(client.payments.waitUntilFinal("pay_1", { timeoutMs })).rejects.toThrow("timeoutMs");
      expect(() => new PaymentClient({ baseUrl, apiKey: "k", timeoutMs })).toThrow("timeoutMs");
    }
    expect(requests).toHaveLength(0);
  });

  test("leaves a poll the time that the service may hold it", async () => {
    script((response) => void setTimeout(() => json(200, { status: "processing" })(response), 300));
    expect(await client.payments.status("pay_1", { maxPollMs: 20_000 }, { timeoutMs: 100 })).toMatchObject({
      status: "processing",
    });
    expect(requests).toHaveLength(1);
  });

  test("may be a signal, which ends the call, its retries and its waits with the signal's reason", async () => {
    script(hang);
    const reason = new Error("the page was left");
    const controller = new AbortController();
    const waiting = client.payments.get("pay_1", { signal: controller.signal });
    setTimeout(() => controller.abort(reason), 50);
    await expect(waiting).rejects.toBe(reason);
    const timeout = new AbortController();
    script((response) => {
      response.once("finish", () => setTimeout(() => timeout.abort(new DOMException("", "TimeoutError")), 50));
      limited("20")(response);
    });
    const pausing = client.payments.get("pay_1", { signal: timeout.signal });
    await expect(pausing).rejects.toMatchObject({ name: "TimeoutError" });
    expect(requests).toHaveLength(1);
    await expect(client.payments.get("pay_1", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(requests).toHaveLength(1);
  });
});

describe("waitUntilFinal", () => {
  const status = (name: string, isFinal: boolean) => json(200, { status: name, isFinal, pollInMs: isFinal ? null : 1 });

  test("polls until the payment is final, reports each status once, and lets the service hold its answers", async () => {
    script(
      status("requires_action", false),
      status("requires_action", false),
      status("processing", false),
      status("succeeded", true),
    );
    const seen: string[] = [];
    const last = await client.payments.waitUntilFinal("pay_1", { onStatus: (one) => seen.push(one.status) });
    expect(last).toMatchObject({ status: "succeeded", isFinal: true });
    expect(seen).toEqual(["requires_action", "processing", "succeeded"]);
    expect(requests.map(({ url }) => url)).toEqual(Array(4).fill("/v1/payments/pay_1/status?maxPollMs=20000"));
  });

  test("outlasts an outage of the service that is longer than the retries of a call", async () => {
    script(...Array(6).fill(reset), status("succeeded", true));
    expect(await client.payments.waitUntilFinal("pay_1")).toMatchObject({ status: "succeeded" });
  });

  test("waits for the end of a limit that is longer than a call waits", async () => {
    script(limited("31"));
    await expect(client.payments.waitUntilFinal("pay_1", { timeoutMs: 1500 })).rejects.toThrow(WaitTimeoutError);
    expect(requests).toHaveLength(1);
  });

  test("ends at a redirect and at a certificate that is refused, because they do not pass", async () => {
    script((response) => void response.writeHead(302, { location: "/elsewhere" }).end());
    await expect(client.payments.waitUntilFinal("pay_1")).rejects.toMatchObject({ code: "redirected" });
    expect(requests).toHaveLength(1);
    const cause = Object.assign(new Error("self-signed certificate"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    const fetch = vi.fn(() => Promise.reject(new TypeError("fetch failed", { cause })));
    const waiting = new PaymentClient({ baseUrl, apiKey: "k", fetch }).payments.waitUntilFinal("pay_1");
    await expect(waiting).rejects.toMatchObject({ name: "ConnectionError", code: "certificate_rejected" });
    expect(fetch).toHaveBeenCalledOnce();
  });

  describe("with a clock of its own", () => {
    afterEach(() => void vi.useRealTimers());

    /** Waits for a payment whose polls get these answers, the last one again and again; returns the times of the polls. */
    async function pollTimes(forMs: number, ...answers: (() => Response)[]): Promise<number[]> {
      vi.useFakeTimers();
      const startedAt = Date.now();
      const times: number[] = [];
      const fetch = async () => {
        times.push(Date.now() - startedAt);
        return (answers[times.length - 1] ?? answers.at(-1))?.() ?? Response.error();
      };
      const options = { timeoutMs: forMs };
      const waiting = new PaymentClient({ baseUrl, apiKey: "k", fetch }).payments.waitUntilFinal("pay_1", options);
      const ended = waiting.catch((error: unknown) => expect(error).toBeInstanceOf(WaitTimeoutError));
      await vi.advanceTimersByTimeAsync(forMs);
      await ended;
      return times;
    }
    const answer = (httpStatus: number, body: object | string, headers: Record<string, string> = {}) => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      return () => new Response(text, { status: httpStatus, headers });
    };
    const final = answer(200, { status: "succeeded", isFinal: true, pollInMs: null });

    test("outlasts every limit, outage and answer of a proxy, and comes back when the service says", async () => {
      const refusal = { code: "rate_limited", message: "slow down" };
      const times = await pollTimes(
        600_000,
        answer(429, refusal, { "retry-after": "60" }),
        answer(503, { ...refusal, code: "internal_error" }, { "retry-after": "45" }),
        answer(429, refusal),
        answer(200, "<h1>Welcome</h1>"),
        answer(404, "<h1>default backend</h1>"),
        final,
      );
      expect(times).toEqual([0, 60_000, 105_000, 106_000, 107_000, 108_000]);
    });

    test("polls neither without a pause nor less than once a minute, whatever the service says", async () => {
      const open = (pollInMs: number) => answer(200, { status: "processing", isFinal: false, pollInMs });
      expect((await pollTimes(1000, open(0))).length).toBeLessThanOrEqual(12);
      expect(await pollTimes(150_000, open(1e12))).toEqual([0, 0, 60_000, 120_000]);
    });
  });

  test("ends when its time has passed, also in the middle of a poll, and at an error that remains", async () => {
    script(status("processing", false), hang);
    await expect(client.payments.waitUntilFinal("pay_1", { timeoutMs: 100 })).rejects.toThrow(WaitTimeoutError);
    script(json(404, { code: "payment_not_found", message: "no such payment" }));
    await expect(client.payments.waitUntilFinal("pay_1")).rejects.toMatchObject({ code: "payment_not_found" });
  });
});
