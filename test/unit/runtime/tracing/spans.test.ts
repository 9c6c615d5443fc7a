import { afterEach, expect, test, vi } from "vitest";
import { readLogFields } from "../../../../runtime/log-context.ts";
import { openTracer } from "../../../../runtime/tracing/open-tracer.ts";
import {
  addSpan,
  currentTrace,
  inNewTrace,
  inSharedSpan,
  inSpan,
  inTracesOf,
  outsideTraces,
  setTracer,
  startRequestSpan,
} from "../../../../runtime/tracing/spans.ts";
import { type CollectedSpan, startCollector } from "../../../support/otlp-collector.ts";

const traces = ["1", "2"].map((digit) => digit.repeat(32));
const [first, second] = traces.map((id) => `00-${id}-${"a".repeat(16)}-01`);
const unsampled = `00-${"3".repeat(32)}-${"a".repeat(16)}-00`;
const named = (name: string) => () => ({ name });

afterEach(() => setTracer(undefined));

/** Turns tracing on with a share of traces. The returned function turns it off and returns what the collector has got. */
async function record(ratio: number): Promise<() => Promise<CollectedSpan[]>> {
  const collector = await startCollector();
  const ignore = () => undefined;
  const options = { endpoint: collector.url, headers: {}, resource: {}, onDropped: ignore, onExported: ignore };
  const { tracer, close } = openTracer({ ...options, ratio });
  setTracer(tracer);
  return async () => {
    await close();
    return collector.spans;
  };
}

test("while tracing is off, work runs and nothing is described", async () => {
  const describe = vi.fn(named("never"));
  const work = async () => currentTrace() ?? "done";
  expect(await inSpan(describe, work)).toBe("done");
  expect(await inNewTrace(describe, work)).toBe("done");
  expect(await inSharedSpan([{ trace: first }], describe, work)).toBe("done");
  expect(await inTracesOf([first, second], "never", work)).toBe("done");
  expect(startRequestSpan({ name: "never" }, { traceparent: first })).toBeUndefined();
  addSpan({ trace: first }, { name: "never", startedAt: new Date() });
  expect(describe).not.toHaveBeenCalled();
  expect(readLogFields()).toEqual({});
});

test("a client can neither have its request sampled nor choose its trace", async () => {
  const stop = await record(0);
  const span = startRequestSpan({ name: "GET /" }, { traceparent: first });
  const seen = await new Promise((resolve) => span?.run(() => resolve(currentTrace())));
  span?.end({ isError: false });
  expect([seen, await stop()]).toEqual([undefined, []]);
});

test("with a share of 0, only work for payments that are sampled already is recorded", async () => {
  const stop = await record(0);
  await inNewTrace(named("sweep"), () => inSpan(named("select"), async () => undefined));
  await inSharedSpan([{ trace: unsampled }, { trace: null }], named("relay"), () =>
    inSpan(named("call"), async () => undefined),
  );
  await inSharedSpan([{ trace: unsampled }, { trace: first }], named("book"), () =>
    inSpan(named("insert"), async () => undefined),
  );
  const spans = await stop();
  expect(spans.map(({ name, traceId }) => [name, traceId]).toSorted()).toEqual([
    ["book", traces[0]],
    ["insert", traces[0]],
  ]);
});

test("work for two traces links to both, and both to it, also when it fails", async () => {
  const stop = await record(0);
  const secret = new Error("0xsigned");
  const fail = () => inSpan(named("call"), () => Promise.reject(secret));
  await expect(
    inSharedSpan(
      [first, second, first].map((trace) => ({ trace })),
      named("relay"),
      fail,
    ),
  ).rejects.toBe(secret);
  const spans = await stop();
  const shared = spans.find(({ links }) => links.length === 2);
  expect(shared?.links.map(({ traceId }) => traceId)).toEqual(traces);
  const own = spans.filter(({ traceId }) => traces.includes(traceId));
  expect(own).toHaveLength(2);
  for (const one of own)
    expect(one).toMatchObject({
      name: "relay",
      parentSpanId: "a".repeat(16),
      links: [{ traceId: shared?.traceId, spanId: shared?.spanId }],
    });
  expect(spans.find(({ name }) => name === "call")?.parentSpanId).toBe(shared?.spanId);
  expect(spans.map(({ status, attributes }) => [status?.code, attributes["error.type"]])).toEqual(
    Array(4).fill([2, "Error"]),
  );
  expect(JSON.stringify(spans)).not.toContain("0xsigned");
});

test("calls of one trace share its spans, and log lines name them", async () => {
  const stop = await record(1);
  await inTracesOf([first, first, undefined], "shared work", async () => {
    expect(readLogFields()).toEqual({ trace_id: traces[0], span_id: "a".repeat(16) });
    await inSpan(named("select"), async () => undefined);
    expect(outsideTraces(() => currentTrace())).toBeUndefined();
  });
  // A span never begins a trace of its own.
  await inSpan(named("alone"), async () => undefined);
  expect(await stop()).toMatchObject([{ name: "select", traceId: traces[0], parentSpanId: "a".repeat(16) }]);
});
