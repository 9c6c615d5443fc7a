import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";

/** How often a pool is looked at, milliseconds. */
const LOOK_EVERY_MS = 1_000;

/**
 * Notes how many connections of a pool are used, idle and waited for. On a timer and not when scraped, because the
 * statements of a scrape would be counted among those that wait. Gives what stops it.
 */
export function samplePool(db: { connections(): Record<string, number> }, metrics: Metrics): () => void {
  const look = () => {
    for (const [state, count] of Object.entries(db.connections())) metrics.poolConnections.set({ state }, count);
  };
  look();
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return () => clearInterval(timer);
}

/** What a pool is opened with so that its statements are counted and its losses told. */
export function watchStatements(metrics: Metrics, log: Log) {
  return {
    onStatement(seconds: number, failed: boolean) {
      metrics.sqlStatements.inc({ outcome: failed ? "failed" : "ok" });
      metrics.sqlSeconds.observe(seconds);
    },
    onLostConnection: (err: Error) => log.warn({ err }, "a database connection was lost"),
  };
}
