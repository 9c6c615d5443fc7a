import { z } from "zod";
import { parseOtlpHeaders } from "./otlp-headers.ts";

/** Variables of tracing, as OpenTelemetry names them. Tracing is off without an endpoint (docs/operations/tracing.md). */
export const tracingVariables = {
  /** The base URL of a collector that takes OTLP over HTTP. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  /** Headers of requests to the collector, such as a token. */
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .transform((text, context): Record<string, string> => {
      const headers = parseOtlpHeaders(text);
      if (headers) return headers;
      context.addIssue("expected name=value, several separated by commas, with percent-encoded values");
      return z.NEVER;
    })
    .optional(),
  /** The name in the spans; `pay-` and the role of the process when unset. */
  OTEL_SERVICE_NAME: z.string().min(1).max(64).optional(),
  OTEL_TRACES_SAMPLER: z.enum(["parentbased_always_on", "parentbased_traceidratio"]).default("parentbased_always_on"),
  /** The share of traces that `parentbased_traceidratio` records. */
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
};

/** Where a process sends its spans, and how many. */
export type TracingConfig = Readonly<z.infer<z.ZodObject<typeof tracingVariables>>>;
