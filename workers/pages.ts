import type { Logger } from "pino";
import type { PageLook } from "../api/checkout/probe.ts";
import type { Metrics } from "../ops/metrics.ts";

type Deps = {
  /** Fetches both pages from the address that buyers use, and compares them with the release. */
  check: () => Promise<PageLook[]>;
  metrics: Metrics;
  log: Logger;
  now: () => Date;
};

/**
 * Returns the check of the buyers' pages as they are served. It counts and logs differences from the release. The metrics of
 * a page that cannot be fetched keep their last values.
 */
export function createPagesCheck({ check, metrics, log, now }: Deps): () => Promise<void> {
  const nowSeconds = () => now().getTime() / 1000;
  for (const page of ["checkout", "collect"] as const) metrics.pageLooked.set({ page }, nowSeconds());
  return async () => {
    for (const found of await check()) {
      const { page } = found;
      if ("notLooked" in found) {
        log.warn({ page, reason: found.notLooked }, "page could not be checked");
        continue;
      }
      const { differences } = found;
      metrics.pageDifferences.set({ page }, differences.length);
      metrics.pageLooked.set({ page }, nowSeconds());
      if (differences.length > 0) log.error({ page, differences }, "page differs from its release");
    }
  };
}
