import type { MetricFactory } from "./metric-factory.ts";

/** Returns the metrics of tracing. */
export const createTracingMetrics = ({ counter }: MetricFactory) => ({
  spansDropped: counter(
    "pay_trace_spans_dropped_total",
    "Spans that the trace collector did not take (export), or for which the queue was full (queue)",
    ["reason"],
  ),
});
