import { type SpanContext, TraceFlags } from "@opentelemetry/api";

/** A W3C traceparent of version 00. All zeros are not a valid id. */
const FORM = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Returns the span that a traceparent names; undefined for anything else, of any type and length. */
export function parseTraceparent(value: unknown): SpanContext | undefined {
  const [, traceId, spanId, flags = ""] = (typeof value === "string" && FORM.exec(value)) || [];
  if (!traceId || !spanId) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}

/** Returns the traceparent of a span. */
export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`;
}
