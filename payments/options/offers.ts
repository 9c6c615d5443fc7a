import { withCallPriority } from "../../chains/call-priority.ts";
import type { Chain, Token } from "../../chains/chain.ts";
import { ChainError } from "../../chains/errors.ts";
import type { Allowance } from "../../db/tables.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import { screenAccounts } from "../../transfers/screen-accounts.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Candidate } from "./candidates.ts";
import { isOffered } from "./payable-assets.ts";

/** An asset that an account can pay with, and the allowance that it has to grant first, if any. */
export type Offer = Candidate & { allowance: Allowance | null };

/** Time limit for chain reads, milliseconds: the wallet and its buyer wait for the options. */
const BALANCES_WITHIN_MS = 5_000;

/** The tokens that were found to be watched, which they remain. */
const watched = new WeakSet<Token>();

/**
 * Returns the candidates in assets that a worker watches. An api may have a new chain before the first worker has it. That worker
 * begins to read the chain where it is then, so it would never find a push that was paid before.
 */
export async function keepWatched(
  deps: Pick<PaymentDeps, "db">,
  candidates: readonly Candidate[],
): Promise<Candidate[]> {
  const unsure = candidates.filter(({ token }) => !watched.has(token));
  for (const [chain, here] of Map.groupBy(unsure, (candidate) => candidate.chain)) {
    const assets = await getTransferDriver(chain).listWatched(deps);
    for (const { token } of here) if (assets.has(token.asset)) watched.add(token);
  }
  return candidates.filter(({ token }) => watched.has(token));
}

/**
 * Returns the candidates whose accounts pass screening. If a chain cannot be screened, keeps all of its candidates: no
 * transfer is relayed before its payer has been screened.
 */
export async function keepServed(deps: PaymentDeps, candidates: readonly Candidate[]): Promise<Candidate[]> {
  const kept: Candidate[] = [];
  for (const [chain, here] of Map.groupBy(candidates, (candidate) => candidate.chain)) {
    const payers = [...new Set(here.map(({ payer }) => payer))];
    const screening = withCallPriority("convenience", () => screenAccounts(deps, chain, payers));
    const screened = withTimeout(screening, BALANCES_WITHIN_MS, noBalances(chain));
    const refused = await screened.catch((err: unknown) => {
      deps.log.warn({ err, chain: chain.chain }, "screening failed for the accounts of an options request");
      return new Set<string>();
    });
    kept.push(...here.filter(({ payer }) => !refused.has(payer)));
  }
  return kept;
}

/** How long the barred accounts of a chain are used after they were read, milliseconds. */
const BARRED_READ_MS = 1_000;
const barredOf = new WeakMap<Chain, { barred: ReadonlySet<string>; readAt: number }>();

/**
 * Returns the accounts that have burned our gas on a chain within a day. It may miss one of the last second, whose
 * payment is then refused when it is verified.
 */
async function listBarred(deps: PaymentDeps, chain: Chain): Promise<ReadonlySet<string>> {
  const readAt = deps.now().getTime();
  const known = barredOf.get(chain);
  if (known && Math.abs(readAt - known.readAt) < BARRED_READ_MS) return known.barred;
  const barred = await getTransferDriver(chain).listBarred(deps);
  barredOf.set(chain, { barred, readAt });
  return barred;
}

/** Returns the candidates without those accounts that have burned our gas on their chain within a day. */
export async function dropBarred(deps: PaymentDeps, candidates: readonly Candidate[]): Promise<Candidate[]> {
  const kept: Candidate[] = [];
  for (const [chain, here] of Map.groupBy(candidates, (candidate) => candidate.chain)) {
    const barred = await listBarred(deps, chain);
    kept.push(...here.filter(({ payer }) => !barred.has(payer)));
  }
  return kept;
}

/** Returns the offers of test mode: reads no balance, and offers nothing that the wallet would have to send itself. */
export function listTestOffers(candidates: readonly Candidate[]): Offer[] {
  return candidates
    .filter(({ token }) => isOffered("test", token))
    .map((candidate) => ({ ...candidate, allowance: null }));
}

/**
 * Returns the candidates whose accounts hold enough, with one multicall per chain. A chain that does not respond in
 * time is omitted with a warning, so that the buyer still gets the options of the others. Throws the first chain's
 * error when a chain does not respond and no other one has an offer: the account may be able to pay there.
 */
export async function listOffers(deps: PaymentDeps, candidates: readonly Candidate[]): Promise<Offer[]> {
  const chains = [...new Set(candidates.map((candidate) => candidate.chain))];
  const ends = await Promise.allSettled(
    chains.map((chain) => {
      const here = candidates.filter((candidate) => candidate.chain === chain);
      return withTimeout(readAllowances(chain, here), BALANCES_WITHIN_MS, noBalances(chain));
    }),
  );
  const failed = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  for (const err of failed) deps.log.warn({ err }, "chain omitted from the options");
  const allowances = new Map(ends.flatMap((end) => (end.status === "fulfilled" ? end.value : [])));
  // Keep the order in which the wallet listed its accounts.
  const offers = candidates.flatMap((candidate) => {
    const allowance = allowances.get(candidate);
    return allowance === undefined ? [] : [{ ...candidate, allowance }];
  });
  if (offers.length === 0 && failed.length > 0) throw failed[0];
  return offers;
}

/** Returns the allowance that each candidate has to grant; undefined for one whose account cannot pay. */
async function readAllowances(
  chain: Chain,
  candidates: readonly Candidate[],
): Promise<(readonly [Candidate, Allowance | null | undefined])[]> {
  const wanted = candidates.map(({ token: { asset }, payer, amount }) => ({ asset, payer, amount }));
  const { wallets } = getTransferDriver(chain);
  const allowances = await withCallPriority("convenience", () => wallets.readAllowances(wanted));
  return candidates.map((candidate, index) => [candidate, allowances[index]]);
}

/** Returns the error of a chain that takes too long to return balances. */
const noBalances = (chain: Chain) => () =>
  new ChainError("rpc_unreachable", { detail: `no balances from ${chain.chain} within ${BALANCES_WITHIN_MS} ms` });
