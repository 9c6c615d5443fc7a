import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import type { ListedTransaction } from "../../chains/solana/transaction-history.ts";
import type { AccountCursor } from "../../db/queries/account-cursors.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** Endpoints that must have listed a history. */
export const REQUIRED_ENDPOINTS = 2;
/** How long a listing waits for an endpoint that answers and lags, milliseconds. */
const WAIT_MS = 30_000;

/** The new part of an endpoint's page. `isEnd` says that nothing new comes after it. */
export type ListPart = { by: string; fresh: readonly ListedTransaction[]; isEnd: boolean };

/** Since when listings of a cluster wait for another endpoint. */
const waitingSince = new WeakMap<SolanaChain, number>();

/**
 * Returns true while what only one endpoint has listed does not count as listed: another one answers, and does not list as much
 * yet. An endpoint that does not answer, or lags for too long, is not waited for.
 */
export function isOtherEndpointAwaited(
  deps: Pick<TransferDeps, "now">,
  chain: SolanaChain,
  { isAgreed, answered, cursor }: { isAgreed: boolean; answered: number; cursor: AccountCursor },
): boolean {
  const isBehind = isAgreed ? cursor.relist_slot !== null && waitingSince.has(chain) : answered >= REQUIRED_ENDPOINTS;
  if (!isBehind) {
    waitingSince.delete(chain);
    return false;
  }
  const now = deps.now().getTime();
  const since = waitingSince.get(chain) ?? now;
  waitingSince.set(chain, since);
  return now - since < WAIT_MS;
}

/**
 * Logs and counts transactions that one endpoint lists and another one, whose list goes back as far, leaves out: after slot `known`
 * and up to slot `final`, which both have reached.
 */
export function reportOmissions(
  deps: Pick<TransferDeps, "metrics" | "log">,
  { chain }: SolanaChain,
  parts: readonly ListPart[],
  { final, known }: { final: number; known: number },
): void {
  const slots = new Map(parts.flatMap(({ fresh }) => fresh).map((one) => [one.signature, one.slot]));
  for (const { by, fresh, isEnd } of parts) {
    const shown = new Set(fresh.map(({ signature }) => signature));
    const from = isEnd ? known : (fresh.at(-1)?.slot ?? final);
    const left = [...slots].filter(([signature, slot]) => slot > from && slot <= final && !shown.has(signature));
    const [omitted] = left;
    if (!omitted) continue;
    deps.metrics.endpointDisagreements.inc({ chain, endpoint: by });
    deps.log.error(
      { chain, endpoint: by, tx: omitted[0], slot: omitted[1], count: left.length },
      "an endpoint leaves transactions out of the treasury's history that another one lists; they are read",
    );
  }
}
