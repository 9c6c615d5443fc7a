import { findingKinds } from "../../db/findings.ts";
import { countFailures } from "../../db/queries/failed-bookings.ts";
import { countFindings, findLastCheck } from "../../db/queries/ledger-checks.ts";
import { listDifferences } from "../../db/queries/reconciliations.ts";
import { type GaugeDeps, measureAge } from "./gauge-deps.ts";
import { isSignerLogContradicted } from "./signer-log.ts";

/** Returns the reads of the gauges that show whether the books are right. */
export function createLedgerReads(deps: GaugeDeps) {
  const { db } = deps;
  const now = deps.now();
  const configured = [...deps.chains.keys()];
  return {
    /** Number of rows of each chain that could not be booked. Includes chains that have left the networks file. */
    bookings: async () => {
      const failures = await countFailures(db);
      return {
        failedBookings: [...new Set([...configured, ...failures.map(({ chain }) => chain)])].map((chain) => ({
          chain,
          count: failures.find((one) => one.chain === chain)?.count ?? 0,
        })),
      };
    },
    /**
     * The newest reconciliation of the ledger with each chain, minor units, and its age in seconds. A chain that was never
     * reconciled counts from the start of this process.
     */
    reconciliations: async () => {
      const found = (await listDifferences(db)).filter(({ chain }) => deps.chains.has(chain));
      return {
        differences: found.map(({ at: _, ...one }) => one),
        // One run stores all rows of a chain.
        reconciliationAges: configured.map((chain) => ({
          chain,
          seconds: measureAge(now, found.find((one) => one.chain === chain)?.at ?? deps.startedAt),
        })),
      };
    },
    /** Contradictions that the newest check of the ledger has found, by kind, and the age of the check in seconds. */
    ledger_checks: async () => {
      const findings = await countFindings(db);
      return {
        findings: findingKinds.map((kind) => ({ kind, count: findings.find((one) => one.kind === kind)?.count ?? 0 })),
        ledgerCheckSeconds: measureAge(now, await findLastCheck(db)),
      };
    },
    /** Whether the signer's audit log contradicts what it was. */
    signer_log: async () => ({ isSignerLogContradicted: await isSignerLogContradicted(deps) }),
  };
}
