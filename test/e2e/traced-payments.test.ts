import { expect, test } from "vitest";
import { type Buyer, createPayment, listOptions, signOption, waitFinal } from "../../local/buyer-client.ts";
import { describeNetworks, fundBuyers, keysOf, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { type CollectedSpan, startCollector } from "../support/otlp-collector.ts";
import { scrape, sumOf } from "../support/scrape.ts";
import { spawnSigner } from "../support/spawn-signer.ts";
import { testKeys } from "../support/test-deps.ts";
import { fundSolanaBuyers, makeSolanaKeys, startTestSolana } from "../support/test-solana.ts";
import { waitFor } from "../support/wait-for.ts";
import { registerEndpointIn, startWebhookEndpoint } from "../support/webhook-endpoint.ts";

const [chain, there] = await Promise.all([startChain(), startTestSolana({ slotMs: 400 })]);
const collector = await startCollector();
const token = "collector-t0ken";
const rpcKey = "rpc-k3y-of-the-endpoint";
const callers = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const tracing = {
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${token}`,
  LOG_LEVEL: "debug",
};
/** Calls of both chains that belong to a payment alone. */
const callsOf = {
  [chain.id]: { verify: "eth_call", relay: "eth_sendRawTransaction", signer: "eth_getTransactionReceipt" },
  [there.id]: { verify: "simulateTransaction", relay: "sendTransaction", signer: "getTransaction" },
};
/** The steps of a payment, which are in the trace of its confirm. */
const steps = ["POST /v1/gateway/payment/:id/confirm", "verify", "relay", "include", "observe", "book", "webhook"];

test("traces lead from confirms through shared jobs, statements, calls and the signer to webhooks, and hold no secrets", async () => {
  collector.refuse(200);
  // A failed try leaves spans, and a collector that hangs.
  collector.spans.length = 0;
  const keys = await makeSolanaKeys(there);
  const networks = {
    rpcUrls: [`${chain.url}/?key=${rpcKey}`],
    solana: { chain: there, keys, rpcUrls: [`${there.url}/?key=${rpcKey}`] },
  };
  const secretKeys = keysOf(chain, networks);
  const document = await describeNetworks(chain, networks);
  const signer = await spawnSigner(document, [chain.asset, there.asset], { ...secretKeys, ...tracing });
  const fleet = await startFleet({
    chain,
    ...networks,
    workers: 1,
    env: {
      ...tracing,
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "1",
      SIGNER: `unix:${signer.socketPath}`,
    },
  });
  const [api, worker] = [fleet.apis[0], fleet.workers[0]];
  const webhooks = await startWebhookEndpoint();
  const { secret } = await registerEndpointIn(fleet.databaseUrl, fleet.shop.caller.merchantId, webhooks.url);
  const prepare = async (on: string, buyer: Buyer, index: number) => {
    const id = await createPayment(fleet.shop, { referenceId: `order-${index}`, cents: "100" });
    const [option] = await listOptions(fleet.shop, id, [`${on}:${buyer.address}`]);
    if (!option) throw new Error("no option");
    return { id, on, body: { optionId: option.id, results: await signOption(fleet.shop, id, option, buyer) } };
  };
  type Prepared = Awaited<ReturnType<typeof prepare>>;
  const confirmOne = ({ id, body }: Prepared) =>
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
  const delivered = (id: string) =>
    collector.spans.find((span) => isOf(span, id) && span.attributes["pay.webhook.type"] === "payment.succeeded");
  const traceOf = (id: string) => delivered(id)?.traceId ?? "";

  const buyers = { [chain.id]: await fundBuyers(chain, 4), [there.id]: await fundSolanaBuyers(there, 4) };
  const prepared: Prepared[] = [];
  for (const [on, [first, ...others]] of Object.entries<Buyer[]>(buyers)) {
    if (!first) throw new Error("no buyer");
    const alone = await prepare(on, first, 0);
    await confirmOne(alone);
    await waitFinal(fleet.shop, alone.id, 90_000);
    const together = await Promise.all(others.map((buyer, index) => prepare(on, buyer, index + 1)));
    await Promise.all(together.map(confirmOne));
    for (const { id } of together)
      expect(await waitFinal(fleet.shop, id, 90_000)).toMatchObject({ status: "succeeded" });
    prepared.push(alone, ...together);
  }
  await waitFor(() => prepared.every(({ id }) => delivered(id)), { within: 30_000, what: "the webhooks' spans" });
  // Every step of a payment is in the trace of its confirm.
  for (const { id } of prepared) {
    const spans = () => collector.ofTrace(traceOf(id));
    // A watcher that reads a transaction's block when it is final already records no inclusion before.
    const missing = () => steps.filter((name) => name !== "include" && !spans().some((span) => span.name === name));
    await waitFor(() => missing().length === 0, { within: 20_000, what: "the spans of every step" });
    const [root] = spans().filter(({ name }) => name === steps[0]);
    expect(root).toMatchObject({ service: "pay-api", links: [callers], kind: 2 });
    expect(root?.parentSpanId).toBeUndefined();
    expect(root?.traceId).not.toBe(callers.traceId);
    for (const step of spans().filter(({ name }) => steps.slice(1).includes(name)))
      expect([step.name, step.service, step.parentSpanId]).toEqual([step.name, "pay-worker", root?.spanId]);
    // All parents are known, so that a viewer shows one tree.
    const isWhole = () => {
      const ids = new Set(spans().map(({ spanId }) => spanId));
      return spans().every(({ parentSpanId }) => parentSpanId === undefined || ids.has(parentSpanId));
    };
    await waitFor(isWhole, { within: 20_000, what: "the spans of all processes" });
  }
  expect(collector.spans.map(({ name }) => name)).toContain("include");
  for (const [on, calls] of Object.entries(callsOf)) {
    const ofChain = prepared.filter((one) => one.on === on);
    // The payment that no other shared its batches with has their statements and calls in its own trace.
    const own = () => collector.ofTrace(traceOf(ofChain[0]?.id ?? ""));
    const parentOf = (span: CollectedSpan) => own().find(({ spanId }) => spanId === span.parentSpanId);
    const within = (step: string) =>
      own()
        .filter((span) => parentOf(span)?.name === step)
        .map(({ name }) => name);
    expect(own().map(({ name }) => name)).toContain("process verify-signature");
    expect(within("POST /v1/gateway/payment/:id/confirm")).toContain("insert attempt");
    expect(within("verify")).toEqual(expect.arrayContaining([calls.verify, "insert transfer"]));
    expect(within("relay")).toEqual(expect.arrayContaining([calls.relay, "commit"]));
    expect(within("book")).toContain("update payment");
    // The signer's span is a child of the worker's request, and has the signer's own calls below it. A payout that waits for
    // finality is requested by the sweep, in no payment's trace.
    const spansOf = (service: string) => collector.spans.filter((span) => span.service === service);
    const requests = () => spansOf("pay-worker").filter(({ name }) => name === "POST /v1/payouts");
    const signing = await waitFor(
      () =>
        spansOf("pay-signer").find(
          (span) =>
            span.name === "POST /v1/payouts" &&
            requests().some(({ spanId, traceId }) => spanId === span.parentSpanId && traceId === span.traceId) &&
            spansOf("pay-signer").some(
              ({ name, parentSpanId }) => name === calls.signer && parentSpanId === span.spanId,
            ),
        ),
      { within: 20_000, what: `the signer's spans of ${on}` },
    );
    expect(signing).toMatchObject({ kind: 2, attributes: { "http.route": "/v1/payouts" } });
    expect(requests().find(({ spanId }) => spanId === signing.parentSpanId)).toMatchObject({ kind: 3 });
    // Work for several payments links to them, and each of them links to it.
    const traces = new Set(ofChain.map(({ id }) => traceOf(id)));
    const shared = collector.spans.filter(
      ({ links }) => links.length > 1 && links.every(({ traceId }) => traces.has(traceId)),
    );
    expect(shared.map(({ name }) => name)).toEqual(expect.arrayContaining(["verify", "relay"]));
    for (const batch of shared.filter(({ name }) => steps.includes(name)))
      for (const { traceId } of batch.links) {
        const linking = collector.ofTrace(traceId).filter(({ name }) => name === batch.name);
        const backLink = { traceId: batch.traceId, spanId: batch.spanId };
        expect(linking.flatMap(({ links }) => links)).toContainEqual(backLink);
      }
  }

  // The merchant's server is outside of the trust boundary.
  expect(webhooks.arrivals.flatMap(({ headers }) => headers["traceparent"] ?? [])).toEqual([]);
  expect(collector.requests[0]).toMatchObject({ url: "/v1/traces", headers: { authorization: `Bearer ${token}` } });

  // Log lines lead to the trace, the request, the job and the payment.
  const [alone] = prepared;
  const records = [...(api?.records() ?? []), ...(worker?.records() ?? [])];
  const about = records.filter((line) => line["trace_id"] === traceOf(alone?.id ?? ""));
  expect(about).toContainEqual(
    expect.objectContaining({
      role: "api",
      payment: alone?.id,
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
  const privateKeys = Object.entries({ ...testKeys, ...secretKeys }).flatMap(([name, value]) =>
    /PUBLIC/.test(name) ? [] : [value, value.split(":").at(-1) ?? value],
  );
  // The URL of sentinels names several hosts, which URL refuses.
  const passwords = [fleet.databaseUrl, fleet.redis.url].flatMap(
    (url) => /:\/\/[^:@/]*:([^@/]+)@/.exec(url)?.[1] ?? [],
  );
  const secrets = [
    ...signatures,
    ...privateKeys,
    ...passwords,
    token,
    rpcKey,
    secret,
    fleet.shop.caller.apiKey,
    "s3cret",
  ].map((one) => one.replace(/^0x/, ""));
  expect(secrets.every((one) => one.length > 5)).toBe(true);
  const texts = [...collector.bodies, ...(api?.lines ?? []), ...(worker?.lines ?? []), ...signer.process.lines].map(
    (text) => text.toLowerCase(),
  );
  expect(secrets.filter((one) => texts.some((text) => text.includes(one.toLowerCase())))).toEqual([]);

  // A collector that hangs holds up neither payments nor the end of a process.
  collector.refuse("hang");
  const [buyer] = buyers[chain.id] ?? [];
  if (!buyer) throw new Error("no buyer");
  const last = await prepare(chain.id, buyer, 9);
  await confirmOne(last);
  expect(await waitFinal(fleet.shop, last.id, 20_000)).toMatchObject({ status: "succeeded" });
  const dropped = async () =>
    sumOf(await scrape(worker?.metricsUrl ?? ""), "pay_trace_spans_dropped_total", { reason: "export" });
  await waitFor(async () => ((await dropped()) ?? 0) > 0, { within: 30_000 });
  const warnings = () =>
    worker?.records().filter(({ msg }) => String(msg).startsWith("trace collector takes no spans")) ?? [];
  await waitFor(() => warnings().length > 0, { within: 20_000, what: "the warning" });
  expect(warnings()).toHaveLength(1);
  await worker?.kill("SIGTERM", 40_000);
  expect(await worker?.gone).toEqual({ code: 0, signal: null });
});

const isOf = (span: CollectedSpan, paymentId: string) => span.attributes["pay.payment.id"] === paymentId;
