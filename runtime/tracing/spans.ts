import {
  type Attributes,
  context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { errorCode } from "../redaction.ts";
import { formatTraceparent, parseTraceparent } from "./traceparent.ts";

/** What a span says. Attributes hold names, ids and counts: no values of statements, no bodies, no URLs. */
export type SpanDescription = { name: string; kind?: "client" | "server" | "consumer"; attributes?: Attributes };

/** A trace that takes part in shared work, by its traceparent; null and undefined when it is not sampled. */
export type TraceMember = { trace: string | null | undefined; attributes?: Attributes };

const kinds = { client: SpanKind.CLIENT, server: SpanKind.SERVER, consumer: SpanKind.CONSUMER };

/** Undefined while tracing is off: every function of this file then only runs its work. */
let tracer: Tracer | undefined;

/** Turns tracing on (start-tracing.ts), or off without a tracer. */
export function setTracer(one: Tracer | undefined): void {
  tracer = one;
}

/** Returns true while spans can be recorded. */
export function isTracing(): boolean {
  return tracer !== undefined;
}

/** Returns the traceparent of the running span if its trace is sampled. */
export function currentTrace(): string | undefined {
  const running = findRunning();
  return running && formatTraceparent(running);
}

/** Returns the ids of the running span for log lines, if its trace is sampled. */
export function readTraceIds(): { trace_id: string; span_id: string } | undefined {
  const running = findRunning();
  return running && { trace_id: running.traceId, span_id: running.spanId };
}

/** Adds attributes to the running span. */
export function setSpanAttributes(attributes: Attributes): void {
  if (tracer) trace.getActiveSpan()?.setAttributes(attributes);
}

/** Runs work in a span of the running trace. Without one, only runs it. */
export function inSpan<T>(describe: () => SpanDescription, work: () => Promise<T>): Promise<T> {
  if (!tracer || !findRunning()) return work();
  return runIn(tracer.startSpan(...toArguments(describe())), work);
}

/** Runs work in the first span of a new trace, which the sampler may leave out. */
export function inNewTrace<T>(describe: () => SpanDescription, work: () => Promise<T>): Promise<T> {
  if (!tracer) return work();
  return runIn(tracer.startSpan(...toArguments(describe(), { root: true })), work);
}

/** Runs work that belongs to no trace. */
export function outsideTraces<T>(work: () => T): T {
  return tracer ? context.with(ROOT_CONTEXT, work) : work();
}

/**
 * Runs work that is done for several traces at once. With one sampled trace among them, the work runs in a span of that trace.
 * With several, it runs in a span of a trace of its own, which links to each of them, and each of them gets a span that links
 * to it. Without any, the work runs outside of traces.
 */
export function inSharedSpan<T>(
  members: readonly TraceMember[],
  describe: () => SpanDescription,
  work: () => Promise<T>,
): Promise<T> {
  if (!tracer) return work();
  const sampled = listSampled(members);
  const [first] = sampled;
  if (!first) return outsideTraces(work);
  const { name, ...description } = describe();
  const startIn = ({ span, attributes }: Sampled, links: Link[]) =>
    startSpan({ name, ...description, attributes: { ...description.attributes, ...attributes } }, { links }, span);
  if (sampled.length === 1) return runIn(startIn(first, linksTo(findRunning(), first.span)), work);
  const links = sampled.map(({ span, attributes }) => ({ context: span, ...(attributes ? { attributes } : {}) }));
  const shared = tracer.startSpan(...toArguments({ name, ...description }, { root: true, links }));
  const own = sampled.map((member) => startIn(member, [{ context: shared.spanContext() }]));
  return runIn(shared, work, own);
}

/** Runs work that several calls share in their trace, or in a shared span when they are of several traces. */
export function inTracesOf<T>(
  traces: readonly (string | undefined)[],
  name: string,
  work: () => Promise<T>,
): Promise<T> {
  if (!tracer) return work();
  const members = traces.map((one) => ({ trace: one }));
  const [only, ...others] = listSampled(members);
  if (!only || others.length > 0) return inSharedSpan(members, () => ({ name }), work);
  return context.with(trace.setSpanContext(ROOT_CONTEXT, only.span), work);
}

/** Adds a span that has ended to a sampled trace, with a link to the running span. */
export function addSpan(member: TraceMember, description: SpanDescription & { startedAt: Date }): void {
  const [sampled] = tracer ? listSampled([member]) : [];
  if (!sampled) return;
  const { startedAt, attributes, ...rest } = description;
  const options = { startTime: startedAt, links: linksTo(findRunning(), sampled.span) };
  startSpan({ ...rest, attributes: { ...attributes, ...member.attributes } }, options, sampled.span).end();
}

/** The span of a request, which ends when its response has been sent. */
export type RequestSpan = { run(work: () => void): void; end(attributes: Attributes & { isError: boolean }): void };

/**
 * Starts the trace of an HTTP request. A client can neither choose the trace's id nor have it sampled: its own span, if its
 * header `traceparent` names one, becomes a link. Returns undefined while tracing is off.
 */
export function startRequestSpan(
  description: SpanDescription,
  { traceparent }: { traceparent: unknown },
): RequestSpan | undefined {
  if (!tracer) return undefined;
  const caller = parseTraceparent(traceparent);
  // Without its flag, because a sampled link would have the span sampled.
  const links = caller ? [{ context: { ...caller, traceFlags: TraceFlags.NONE } }] : [];
  const span = tracer.startSpan(...toArguments(description, { root: true, links }));
  return {
    run: (work) => context.with(trace.setSpan(ROOT_CONTEXT, span), work),
    end({ isError, ...attributes }) {
      span.setAttributes(attributes);
      if (isError) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
  };
}

type Sampled = { span: SpanContext; attributes?: Attributes };

/** Returns the sampled ones of some traces, each once. */
function listSampled(members: readonly TraceMember[]): Sampled[] {
  const byTrace = new Map<string, Sampled>();
  for (const { trace: text, attributes } of members) {
    const span = parseTraceparent(text);
    if (span && isSampled(span)) byTrace.set(`${text}`, { span, ...(attributes ? { attributes } : {}) });
  }
  return [...byTrace.values()];
}

const isSampled = ({ traceFlags }: SpanContext) => (traceFlags & TraceFlags.SAMPLED) !== 0;

/** Returns the running span if its trace is sampled; also one that has ended, whose work may go on. */
function findRunning(): SpanContext | undefined {
  const running = tracer && trace.getActiveSpan()?.spanContext();
  return running && isSampled(running) ? running : undefined;
}

/** Returns the link from a span of one trace to the running span of another one, which does the work. */
function linksTo(running: SpanContext | undefined, from: SpanContext): Link[] {
  return running && running.traceId !== from.traceId ? [{ context: running }] : [];
}

function toArguments({ name, kind, attributes }: SpanDescription, options: SpanOptions = {}): [string, SpanOptions] {
  return [name, { ...options, ...(kind ? { kind: kinds[kind] } : {}), ...(attributes ? { attributes } : {}) }];
}

function startSpan(description: SpanDescription, options: SpanOptions, parent: SpanContext): Span {
  const started = tracer?.startSpan(...toArguments(description, options), trace.setSpanContext(ROOT_CONTEXT, parent));
  return started ?? trace.wrapSpanContext(parent);
}

/** Runs work in a span, and ends it with the work; `also` are spans of other traces that stand for the same work. */
async function runIn<T>(span: Span, work: () => Promise<T>, also: readonly Span[] = []): Promise<T> {
  const all = [span, ...also];
  try {
    return await context.with(trace.setSpan(ROOT_CONTEXT, span), work);
  } catch (error) {
    for (const one of all) {
      one.setStatus({ code: SpanStatusCode.ERROR });
      one.setAttribute("error.type", nameError(error));
    }
    throw error;
  } finally {
    for (const one of all) one.end();
  }
}

/** Returns the code or the class of an error. Messages are left out: those of libraries contain requests. */
function nameError(error: unknown): string {
  const code = errorCode(error);
  if (code !== undefined) return String(code).slice(0, 64);
  return error instanceof Error ? error.name : typeof error;
}
