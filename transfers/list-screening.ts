import { ChainError } from "../chains/errors.ts";
import type { Metrics } from "../runtime/metrics.ts";

/**
 * Returns which of these accounts (EVM: in lower case) the operator's list names on a chain. Throws when the list is not
 * available.
 */
export type ScreeningList = (chain: string, accounts: readonly string[]) => ReadonlySet<string>;
export type ScreeningDeps = { screeningList: ScreeningList; metrics: Pick<Metrics, "screeningFailures"> };

/** Reason for rejecting a payer that fails screening, the same for both providers. */
export const SCREENED_OUT = "the account is not served (screening)";

/** Returns which of these accounts the operator's list names. Throws ChainError `screening_down`. */
export function screenByList(deps: ScreeningDeps, chain: string, accounts: readonly string[]): Set<string> {
  return new Set(countFailures(deps, { chain, provider: "list" }, () => deps.screeningList(chain, accounts)));
}

/** Asks a provider of screening and counts its failures. Throws ChainError, `screening_down` for other errors. */
export function countFailures<T>(
  deps: ScreeningDeps,
  labels: { chain: string; provider: "list" | "oracle" },
  ask: () => T,
): T {
  try {
    return ask();
  } catch (cause) {
    deps.metrics.screeningFailures.inc(labels);
    throw cause instanceof ChainError ? cause : new ChainError("screening_down", { cause, detail: "the list" });
  }
}
