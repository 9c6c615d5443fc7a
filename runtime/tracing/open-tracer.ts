import { type Attributes, context, type Link, TraceFlags, type Tracer } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";

/** Spans that wait for the collector at most. Later ones are dropped. */
const MAX_QUEUED = 4_096;
/** How long a request to the collector may take with its retries, milliseconds. */
const EXPORT_MS = 5_000;
/** Interval between exports, milliseconds. */
const EXPORT_EVERY_MS = 2_000;
/** Members of a batch that its span links to at most; no batch of the service has more. */
const MAX_LINKS = 256;
/** Longest text of an attribute, characters; only SQL statements come near it. */
const MAX_TEXT = 2_000;

export type TracerOptions = {
  /** The collector's base URL; spans go to `/v1/traces` below it. */
  endpoint: string;
  headers: Readonly<Record<string, string>>;
  /** The share of new traces that are recorded, 0 to 1. */
  ratio: number;
  resource: Attributes;
  /** Called with the number of spans that were dropped, and whether the collector refused them or the queue was full. */
  onDropped: (spans: number, reason: "export" | "queue") => void;
  /** Called when the collector has taken spans. */
  onExported: () => void;
};

/** Opens a tracer that sends its spans to an OTLP collector. Sending is never waited for, except by `close`. */
export function openTracer(options: TracerOptions): { tracer: Tracer; close: () => Promise<void> } {
  const { endpoint, headers, ratio, resource } = options;
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/+$/, "")}/v1/traces`,
    headers: { ...headers },
    timeoutMillis: EXPORT_MS,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes(resource),
    sampler: new ParentBasedSampler({ root: createRootSampler(ratio) }),
    spanLimits: { linkCountLimit: MAX_LINKS, attributeValueLengthLimit: MAX_TEXT },
    spanProcessors: [createBoundedProcessor(exporter, options)],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  return { tracer: provider.getTracer("payment-service"), close: () => provider.shutdown() };
}

/** Samples a share of new traces, and each span that links to a sampled one: the work of a batch with a sampled payment. */
function createRootSampler(ratio: number): Sampler {
  const ofRatio = new TraceIdRatioBasedSampler(ratio);
  const isSampled = ({ context: { traceFlags } }: Link) => (traceFlags & TraceFlags.SAMPLED) !== 0;
  return {
    shouldSample: (parent, traceId, _name, _kind, _attributes, links) =>
      links.some(isSampled) ? { decision: SamplingDecision.RECORD_AND_SAMPLED } : ofRatio.shouldSample(parent, traceId),
    toString: () => `linked or ${ofRatio}`,
  };
}

/** Creates a batch processor that counts what it drops. The library counts it only for its own metrics. */
function createBoundedProcessor(
  exporter: SpanExporter,
  { onDropped, onExported }: Pick<TracerOptions, "onDropped" | "onExported">,
): SpanProcessor {
  let queued = 0;
  const counting: SpanExporter = {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        queued -= spans.length;
        if (result.code === 0) onExported();
        else onDropped(spans.length, "export");
        // The processor would only report the error to a log of its own.
        done({ code: 0 });
      }),
    shutdown: () => exporter.shutdown(),
  };
  const batches = new BatchSpanProcessor({
    exporter: counting,
    maxQueueSize: MAX_QUEUED,
    scheduledDelayMillis: EXPORT_EVERY_MS,
    exportTimeoutMillis: 2 * EXPORT_MS,
  });
  return {
    onStart: () => undefined,
    onEnd(span) {
      if (queued >= MAX_QUEUED) return onDropped(1, "queue");
      queued += 1;
      batches.onEnd(span);
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  };
}
