import type { Logger } from "pino";
import type { PageLook } from "../api/checkout/probe.ts";
import type { Metrics } from "../ops/metrics.ts";

type Deps = {
  /** Looks at both pages, wherever buyers reach them. */
  look: () => Promise<PageLook[]>;
  metrics: Metrics;
  log: Logger;
  now: () => Date;
};

/**
 * Makes the look at the buyers' pages as they are served: what differs from the release is counted and logged. A page
 * that could not be looked at keeps what was last found, and the time of that.
 */
export function createPagesCheck({ look, metrics, log, now }: Deps): () => Promise<void> {
  const nowSeconds = () => now().getTime() / 1000;
  for (const page of ["checkout", "collect"] as const) metrics.pageLooked.set({ page }, nowSeconds());
  return async () => {
    for (const found of await look()) {
      const { page } = found;
      if ("notLooked" in found) {
        log.warn({ page, reason: found.notLooked }, "a page could not be looked at");
        continue;
      }
      const { differences } = found;
      metrics.pageDifferences.set({ page }, differences.length);
      metrics.pageLooked.set({ page }, nowSeconds());
      if (differences.length > 0) log.error({ page, differences }, "a page is not as its release has it");
    }
  };
}
