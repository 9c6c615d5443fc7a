import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import type { EndpointPlaces, ListedTransaction } from "../../chains/solana/transaction-history.ts";
import type { AccountCursor } from "../../db/queries/account-cursors.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** Endpoints of a cluster that must agree. */
export const REQUIRED_ENDPOINTS = 2;
/** How long a listing waits for an endpoint that answers and lags, milliseconds. */
const WAIT_MS = 30_000;

/**
 * The new part of an endpoint's page. `isEnd` says that nothing new comes after it; `to` is the slot of the transaction before which it
 * begins, if the endpoints' parts begin at different ones.
 */
export type ListPart = {
  by: string;
  fresh: readonly ListedTransaction[];
  isEnd: boolean;
  to?: number | undefined;
};

/** Returns where an endpoint's list continues, or null when it has ended. */
export function findPlace({ fresh, isEnd }: ListPart): EndpointPlaces[string] {
  const last = fresh.at(-1);
  return isEnd || !last ? null : { before: last.signature, slot: last.slot };
}

/** Since when the listing of each account of a cluster waits for another endpoint. */
const waitingSince = new WeakMap<SolanaChain, Map<string, number>>();

/**
 * Returns true while what only one endpoint has listed does not count as listed: another one answers, and does not list as much
 * yet. An endpoint that does not answer, or lags for too long, is not waited for. Logs the beginning of a wait.
 */
export function isOtherEndpointAwaited(
  deps: Pick<TransferDeps, "now" | "log">,
  chain: SolanaChain,
  { isAgreed, answered, cursor }: { isAgreed: boolean; answered: number; cursor: AccountCursor },
): boolean {
  const { account } = cursor;
  const accounts = waitingSince.get(chain) ?? new Map<string, number>();
  waitingSince.set(chain, accounts);
  const began = accounts.get(account);
  const isBehind = isAgreed ? cursor.relist_slot !== null && began !== undefined : answered >= REQUIRED_ENDPOINTS;
  if (!isBehind) {
    accounts.delete(account);
    return false;
  }
  const now = deps.now().getTime();
  if (began === undefined) {
    accounts.set(account, now);
    deps.log.warn(
      { chain: chain.chain, account, waitMs: WAIT_MS },
      "a listing of the treasury's history waits for an endpoint that answers, and lags or lacks a part of the history",
    );
  }
  return now - (began ?? now) < WAIT_MS;
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
  for (const { by, fresh, isEnd, to = Number.POSITIVE_INFINITY } of parts) {
    const shown = new Set(fresh.map(({ signature }) => signature));
    const from = isEnd ? known : (fresh.at(-1)?.slot ?? final);
    const isInPart = (slot: number) => slot > from && slot <= final && slot < to;
    const left = [...slots].filter(([signature, slot]) => isInPart(slot) && !shown.has(signature));
    const [omitted] = left;
    if (!omitted) continue;
    deps.metrics.endpointDisagreements.inc({ chain, endpoint: by });
    deps.log.error(
      { chain, endpoint: by, tx: omitted[0], slot: omitted[1], count: left.length },
      "an endpoint leaves transactions out of the treasury's history that another one lists; they are read",
    );
  }
}
