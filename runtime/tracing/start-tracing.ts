import { hostname } from "node:os";
import project from "../../package.json" with { type: "json" };
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { Shutdown } from "../shutdown.ts";
import { setTracer } from "./spans.ts";
import type { TracingConfig } from "./tracing-variables.ts";

/** How long a process that stops waits for the collector to take the last spans, milliseconds. */
const FLUSH_MS = 3_000;

type Deps = { role: "api" | "worker" | "signer"; log: Log; metrics: Metrics; shutdown: Shutdown };

/**
 * Turns tracing on if the environment names a collector and a share of traces above 0; otherwise OpenTelemetry's SDK is not
 * loaded. Call it before anything else is opened, so that the spans of the shutdown are sent too.
 */
export async function startTracing(config: TracingConfig, deps: Deps): Promise<void> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers = {} } = config;
  const ratio = config.OTEL_TRACES_SAMPLER === "parentbased_traceidratio" ? config.OTEL_TRACES_SAMPLER_ARG : 1;
  if (endpoint === undefined || ratio === 0) return;
  const { role, log, metrics, shutdown } = deps;
  const { openTracer } = await import("./open-tracer.ts");
  let isTaking = true;
  const { tracer, close } = openTracer({
    endpoint,
    headers,
    ratio,
    resource: {
      "service.name": config.OTEL_SERVICE_NAME ?? `pay-${role}`,
      "service.version": project.version,
      "service.instance.id": `${hostname()}-${process.pid}`,
    },
    onDropped(spans, reason) {
      metrics.spansDropped.inc({ reason }, spans);
      // One line per outage. Neither the URL nor the headers are logged, which can hold a token.
      if (isTaking) log.warn({ reason }, "trace collector takes no spans; they are dropped until it does");
      isTaking = false;
    },
    onExported() {
      if (!isTaking) log.info("trace collector takes spans again");
      isTaking = true;
    },
  });
  setTracer(tracer);
  const stop = async () => {
    setTracer(undefined);
    await close();
  };
  shutdown.onClose("tracing", stop, { timeoutMs: FLUSH_MS });
  log.info({ ratio }, "tracing");
}
