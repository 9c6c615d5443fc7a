import { collectDefaultMetrics, type Registry } from "prom-client";
import { createChainMetrics } from "./metrics/chain-metrics.ts";
import { createDatabaseMetrics } from "./metrics/database-metrics.ts";
import { createHttpMetrics } from "./metrics/http-metrics.ts";
import { createJobMetrics } from "./metrics/job-metrics.ts";
import { createMetricFactory } from "./metrics/metric-factory.ts";
import { createPaymentMetrics } from "./metrics/payment-metrics.ts";
import { createSignerMetrics } from "./metrics/signer-metrics.ts";
import { createTracingMetrics } from "./metrics/tracing-metrics.ts";
import { createTransferMetrics } from "./metrics/transfer-metrics.ts";

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Creates every metric of the service on a registry; a test passes its own registry.
 * Names carry base units and the prefix `pay_`. Labels come from closed lists and never hold ids, addresses or URLs.
 */
export function createMetrics(registry: Registry, role: "api" | "worker" | "bull-board" | "signer") {
  registry.setDefaultLabels({ role });
  collectDefaultMetrics({ register: registry });
  const factory = createMetricFactory(registry);
  return {
    build: factory.gauge("pay_build_info", "Always 1; the labels say what runs", ["version", "revision", "schema"]),
    ...createJobMetrics(factory),
    ...createPaymentMetrics(factory),
    ...createTransferMetrics(factory),
    ...createChainMetrics(factory),
    ...createHttpMetrics(factory),
    ...createDatabaseMetrics(factory),
    ...createSignerMetrics(factory),
    ...createTracingMetrics(factory),
  };
}
