import { expect, test } from "vitest";
import { createPayment, listOptions, signOption, waitFinal } from "../../local/buyer-client.ts";
import { fundBuyers, keysOf, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { type CollectedSpan, startCollector } from "../support/otlp-collector.ts";
import { scrape, sumOf } from "../support/scrape.ts";
import { testKeys } from "../support/test-deps.ts";
import { waitFor } from "../support/wait-for.ts";
import { registerEndpointIn, startWebhookEndpoint } from "../support/webhook-endpoint.ts";

const chain = await startChain();
const collector = await startCollector();
const token = "collector-t0ken";
const rpcKey = "rpc-k3y-of-the-endpoint";
const callers = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };

test("traces lead from confirms through shared jobs, statements and calls to webhooks, and hold no secrets", async () => {
  const fleet = await startFleet({
    chain,
    rpcUrls: [`${chain.url}/?key=${rpcKey}`],
    workers: 1,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${token}`,
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "1",
      LOG_LEVEL: "debug",
    },
  });
  const [api, worker] = [fleet.apis[0], fleet.workers[0]];
  const webhooks = await startWebhookEndpoint();
  const { secret } = await registerEndpointIn(fleet.databaseUrl, fleet.shop.caller.merchantId, webhooks.url);
  const buyers = await fundBuyers(chain, 5);
  const prepared = await Promise.all(
    buyers.map(async (buyer, index) => {
      const id = await createPayment(fleet.shop, { referenceId: `order-${index}`, cents: "100" });
      const [option] = await listOptions(fleet.shop, id, [`${chain.id}:${buyer.address}`]);
      if (!option) throw new Error("no option");
      return { id, body: { optionId: option.id, results: await signOption(fleet.shop, id, option, buyer) } };
    }),
  );
  const confirmOne = ({ id, body }: (typeof prepared)[number]) =>
    fetch(`${fleet.baseUrl}/v1/gateway/payment/${id}/confirm`, {
      method: "POST",
      headers: {
        "api-key": fleet.shop.caller.apiKey,
        "content-type": "application/json",
        traceparent: `00-${callers.traceId}-${callers.spanId}-01`,
        tracestate: `vendor=${"x".repeat(400)}`,
      },
      body: JSON.stringify(body),
    });

  const [alone, ...together] = prepared;
  if (!alone) throw new Error("no payment");
  await confirmOne(alone);
  await waitFinal(fleet.shop, alone.id, 30_000);
  await Promise.all(together.map(confirmOne));
  for (const { id } of together) expect(await waitFinal(fleet.shop, id, 30_000)).toMatchObject({ status: "succeeded" });

  const delivered = (id: string) =>
    collector.spans.find((span) => isOf(span, id) && span.attributes["pay.webhook.type"] === "payment.succeeded");
  await waitFor(() => prepared.every(({ id }) => delivered(id)), { within: 30_000, what: "the webhooks' spans" });
  const traceOf = (id: string) => delivered(id)?.traceId ?? "";
  // Every step of a payment is in the trace of its confirm.
  for (const { id } of prepared) {
    const spans = () => collector.ofTrace(traceOf(id));
    const steps = ["POST /v1/gateway/payment/:id/confirm", "verify", "relay", "include", "observe", "book", "webhook"];
    await waitFor(() => steps.every((name) => spans().some((span) => span.name === name)), { within: 10_000 });
    const [root] = spans().filter(({ name }) => name === steps[0]);
    expect(root).toMatchObject({ service: "pay-api", links: [callers], kind: 2 });
    expect(root?.parentSpanId).toBeUndefined();
    expect(root?.traceId).not.toBe(callers.traceId);
    for (const step of spans().filter(({ name }) => steps.slice(1).includes(name)))
      expect([step.name, step.service, step.parentSpanId]).toEqual([step.name, "pay-worker", root?.spanId]);
    // All parents are known, so that a viewer shows one tree.
    const ids = new Set(spans().map(({ spanId }) => spanId));
    expect(spans().filter(({ parentSpanId }) => parentSpanId && !ids.has(parentSpanId))).toEqual([]);
  }
  // The payment that no other shared its batches with has their statements and calls in its own trace.
  const own = collector.ofTrace(traceOf(alone.id));
  const within = (step: string) =>
    own
      .filter(({ parentSpanId }) => own.some((one) => one.name === step && one.spanId === parentSpanId))
      .map(({ name }) => name);
  expect(own.map(({ name }) => name)).toContain("process verify-signature");
  expect(within("POST /v1/gateway/payment/:id/confirm")).toContain("insert attempt");
  expect(within("verify")).toContain("insert transfer");
  expect(within("relay")).toEqual(expect.arrayContaining(["eth_sendRawTransaction", "commit"]));
  expect(within("book")).toContain("update payment");
  // Work for several payments links to them, and each of them links to it.
  const shared = collector.spans.filter(({ name, links }) => name === "verify" && links.length > 1);
  expect(shared.length).toBeGreaterThan(0);
  for (const batch of shared)
    for (const { traceId } of batch.links) {
      const backLinks = collector
        .ofTrace(traceId)
        .filter(({ name }) => name === "verify")
        .flatMap(({ links }) => links);
      expect(backLinks).toContainEqual({ traceId: batch.traceId, spanId: batch.spanId });
    }
  // The merchant's server is outside of the trust boundary.
  expect(webhooks.arrivals.flatMap(({ headers }) => headers["traceparent"] ?? [])).toEqual([]);
  expect(collector.requests[0]).toMatchObject({ url: "/v1/traces", headers: { authorization: `Bearer ${token}` } });

  // Log lines lead to the trace, the request, the job and the payment.
  const records = [...(api?.records() ?? []), ...(worker?.records() ?? [])];
  const about = records.filter((line) => line["trace_id"] === traceOf(alone.id));
  expect(about).toContainEqual(
    expect.objectContaining({
      role: "api",
      payment: alone.id,
      requestId: expect.any(String),
      span_id: expect.any(String),
    }),
  );
  expect(about).toContainEqual(
    expect.objectContaining({
      role: "worker",
      job: expect.stringMatching(/^verify-signature-att_/),
      requestId: expect.any(String),
    }),
  );

  const signatures = prepared.flatMap(({ body }) => body.results.flatMap(({ data }) => data));
  const keys = Object.entries({ ...testKeys, ...keysOf(chain, {}) }).flatMap(([name, value]) =>
    /PUBLIC/.test(name) ? [] : [value, value.split(":").at(-1) ?? value],
  );
  const passwords = [fleet.databaseUrl, fleet.redis.url].flatMap((url) => new URL(url).password || []);
  const secrets = [...signatures, ...keys, ...passwords, token, rpcKey, secret, fleet.shop.caller.apiKey, "s3cret"].map(
    (one) => one.replace(/^0x/, ""),
  );
  expect(secrets.every((one) => one.length > 5)).toBe(true);
  const texts = [...collector.bodies, ...(api?.lines ?? []), ...(worker?.lines ?? [])].map((text) =>
    text.toLowerCase(),
  );
  expect(secrets.filter((one) => texts.some((text) => text.includes(one.toLowerCase())))).toEqual([]);

  // A collector that hangs holds up neither payments nor the end of a process.
  collector.refuse("hang");
  const id = await createPayment(fleet.shop, { referenceId: "without-collector", cents: "100" });
  const [buyer] = buyers;
  const [option] = buyer ? await listOptions(fleet.shop, id, [`${chain.id}:${buyer.address}`]) : [];
  if (!buyer || !option) throw new Error("no option");
  await confirmOne({ id, body: { optionId: option.id, results: await signOption(fleet.shop, id, option, buyer) } });
  expect(await waitFinal(fleet.shop, id, 10_000)).toMatchObject({ status: "succeeded" });
  const dropped = async () =>
    sumOf(await scrape(worker?.metricsUrl ?? ""), "pay_trace_spans_dropped_total", { reason: "export" });
  await waitFor(async () => ((await dropped()) ?? 0) > 0, { within: 30_000 });
  const warnings = worker?.records().filter(({ msg }) => String(msg).startsWith("trace collector takes no spans"));
  expect(warnings).toHaveLength(1);
  await worker?.kill("SIGTERM", 20_000);
  expect(await worker?.gone).toEqual({ code: 0, signal: null });
});

const isOf = (span: CollectedSpan, paymentId: string) => span.attributes["pay.payment.id"] === paymentId;
