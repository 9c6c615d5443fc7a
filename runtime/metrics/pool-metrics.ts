import type { Log } from "../log.ts";
import { withoutLogFields } from "../log-context.ts";
import type { Metrics } from "../metrics.ts";

/** How often the connections of a pool are counted, milliseconds. */
const SAMPLE_EVERY_MS = 1_000;

/**
 * Records regularly how many connections of a pool are used, idle and waiting. It samples on a timer, because the
 * statements of a scrape would themselves count as waiting. Returns a function that stops it.
 */
export function samplePool(db: { connections(): Record<string, number> }, metrics: Metrics): () => void {
  const sample = () => {
    for (const [state, count] of Object.entries(db.connections())) metrics.poolConnections.set({ state }, count);
  };
  sample();
  const timer = setInterval(sample, SAMPLE_EVERY_MS).unref();
  return () => clearInterval(timer);
}

/** Returns options for `openDb` that count statements and log lost connections. */
export function instrumentStatements(metrics: Metrics, log: Log) {
  return {
    onStatement(seconds: number, failed: boolean) {
      metrics.sqlStatements.inc({ outcome: failed ? "failed" : "ok" });
      metrics.sqlSeconds.observe(seconds);
    },
    // A connection runs in the context of the request that opened it, and outlives that request.
    onLostConnection: (err: Error) => withoutLogFields(() => log.warn({ err }, "database connection lost")),
    onUnpreparable: (err: Error) =>
      log.warn({ err }, "the pooler does not pass prepared statements on; this process prepares none from now on"),
  };
}
