import type { Logger } from "pino";
import type { Metrics } from "../runtime/metrics.ts";
import type { PageCheckResult } from "../runtime/released-pages/check-released-pages.ts";

type Deps = {
  /** Fetches both pages from the address that buyers use, and compares them with the release. */
  check: () => Promise<PageCheckResult[]>;
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
  for (const page of ["checkout", "collect"] as const) metrics.pageChecked.set({ page }, nowSeconds());
  return async () => {
    for (const found of await check()) {
      const { page } = found;
      if ("notChecked" in found) {
        log.warn({ page, reason: found.notChecked }, "page could not be checked");
        continue;
      }
      const { differences } = found;
      metrics.pageDifferences.set({ page }, differences.length);
      metrics.pageChecked.set({ page }, nowSeconds());
      if (differences.length > 0) log.error({ page, differences }, "page differs from its release");
    }
  };
}
