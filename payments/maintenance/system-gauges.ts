import { createChainReads } from "./chain-gauges.ts";
import { createDatabaseReads } from "./database-gauges.ts";
import type { GaugeDeps } from "./gauge-deps.ts";
import { createLedgerReads } from "./ledger-gauges.ts";
import { createPaymentReads } from "./payment-gauges.ts";

/** Reads the gauges of a group. */
export type SystemReads = ReturnType<typeof createSystemReads>;

/**
 * Returns the reads of the gauges that every worker reports with the same values, by group: one that fails takes no gauge of
 * another group with it. They are read in this order, the books first. Create them anew for each scrape.
 */
export function createSystemReads(deps: GaugeDeps) {
  return {
    ...createLedgerReads(deps),
    ...createPaymentReads(deps),
    ...createChainReads(deps),
    ...createDatabaseReads(deps),
  };
}
