import type { Hex } from "viem";
import { readHoldings } from "../chains/evm/holdings.ts";
import type { EvmChain, EvmToken } from "../chains/evm/open.ts";
import { type AccountKind, readAccountKinds } from "../chains/evm/wallets.ts";
import { ChainFault } from "../chains/faults.ts";
import type { Chain } from "../chains/open.ts";
import { readSpendable } from "../chains/solana/holdings.ts";
import type { SolanaChain, SolanaToken } from "../chains/solana/open.ts";
import type { Allowance } from "../db/tables.ts";
import { withTimeout } from "../ops/timeout.ts";
import { readGasRules } from "../transfers/gas-limits.ts";
import { screenAccounts } from "../transfers/screening.ts";
import { chooseAllowance } from "./allowances.ts";
import type { Candidate } from "./candidates.ts";
import type { PaymentDeps } from "./deps.ts";
import { isOffered } from "./payable.ts";

/** What an account can really pay, with what it still has to allow for it. */
export type Offer = Candidate & { allowance: Allowance | null };

/** A wallet waits for options with its buyer looking on, milliseconds. */
const BALANCES_WITHIN_MS = 5_000;

/**
 * Without those accounts that screening refuses. Where it cannot say, all of them are shown their options: nothing is
 * carried for anybody until it can.
 */
export async function keepServed(deps: PaymentDeps, candidates: readonly Candidate[]): Promise<Candidate[]> {
  const kept: Candidate[] = [];
  for (const [chain, here] of Map.groupBy(candidates, (candidate) => candidate.chain)) {
    const payers = [...new Set(here.map(({ payer }) => payer))];
    const screened = withTimeout(screenAccounts(deps, chain, payers), BALANCES_WITHIN_MS, noBalances(chain));
    const refused = await screened.catch((err: unknown) => {
      deps.log.warn({ err, chain: chain.chain }, "accounts could not be screened for their options");
      return new Set<string>();
    });
    kept.push(...here.filter(({ payer }) => !refused.has(payer)));
  }
  return kept;
}

/** Without those accounts that have burned gas of ours on their chain within a day. */
export async function dropBarred(deps: PaymentDeps, candidates: readonly Candidate[]): Promise<Candidate[]> {
  const kept: Candidate[] = [];
  for (const [chain, here] of Map.groupBy(candidates, (candidate) => candidate.chain)) {
    const barred = chain.family === "evm" ? (await readGasRules(deps, chain, { forLane: false })).barred : undefined;
    kept.push(...here.filter(({ payer }) => !barred?.has(payer)));
  }
  return kept;
}

/** In test mode no balance is asked, and nothing is offered that a wallet would send. */
export function listTestOffers(candidates: readonly Candidate[]): Offer[] {
  return candidates
    .filter(({ token }) => isOffered("test", token))
    .map((candidate) => ({ ...candidate, allowance: null }));
}

/**
 * What the accounts can pay; one multicall per chain. A chain that does not answer in time is left out with a warning,
 * so that it does not cost the buyer the others; when none answers, its fault is thrown.
 */
export async function listOffers(deps: PaymentDeps, candidates: readonly Candidate[]): Promise<Offer[]> {
  const chains = [...new Set(candidates.map((candidate) => candidate.chain))];
  const ends = await Promise.allSettled(
    chains.map((chain) => {
      const here = candidates.filter((candidate) => candidate.chain === chain);
      return withTimeout(listOffersOn(chain, here), BALANCES_WITHIN_MS, noBalances(chain));
    }),
  );
  const failed = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  if (failed.length > 0 && failed.length === ends.length) throw failed[0];
  for (const err of failed) deps.log.warn({ err }, "a chain is left out of the options");
  const offers = ends.flatMap((end) => (end.status === "fulfilled" ? end.value : []));
  // In the wallet's own order.
  return offers.toSorted((a, b) => candidates.indexOf(a.candidate) - candidates.indexOf(b.candidate)).map(toOffer);
}

type Found = { candidate: Candidate; allowance: Allowance | null };

function toOffer({ candidate, allowance }: Found): Offer {
  return { ...candidate, allowance };
}

function listOffersOn(chain: Chain, candidates: readonly Candidate[]): Promise<Found[]> {
  return chain.family === "evm" ? listEvmOffers(chain, candidates) : listSolanaOffers(chain, candidates);
}

async function listEvmOffers(chain: EvmChain, candidates: readonly Candidate[]): Promise<Found[]> {
  const wanted = candidates.map(({ token, payer }) => ({ token: token as EvmToken, account: payer as Hex }));
  const [holdings, kinds] = await Promise.all([readHoldings(chain, wanted), readKinds(chain, wanted)]);
  return candidates.flatMap((candidate, index) => {
    const [holding, want] = [holdings[index], wanted[index]];
    const kind = kinds.get(candidate.payer) ?? "key";
    const allowance = holding && want && chooseAllowance(want.token, { kind, holding }, candidate.amount);
    return allowance === undefined ? [] : [{ candidate, allowance }];
  });
}

async function listSolanaOffers(chain: SolanaChain, candidates: readonly Candidate[]): Promise<Found[]> {
  const wanted = candidates.map(({ token, payer }) => ({ token: token as SolanaToken, account: payer }));
  const spendable = await readSpendable(chain, wanted);
  return candidates.flatMap((candidate, index) =>
    (spendable[index] ?? 0n) >= candidate.amount ? [{ candidate, allowance: null }] : [],
  );
}

/** What stands at the accounts; asked only where it makes a difference to what is offered. */
async function readKinds(
  chain: EvmChain,
  wanted: readonly { token: EvmToken; account: Hex }[],
): Promise<Map<string, AccountKind>> {
  const matters = wanted.some(({ token }) => token.kind !== "eip3009" || !token.bytesSignatures);
  const payers = matters ? [...new Set(wanted.map(({ account }) => account))] : [];
  const kinds = payers.length > 0 ? await readAccountKinds(chain.rpc, payers) : [];
  return new Map(payers.map((payer, index) => [payer, kinds[index] ?? "key"]));
}

/** The error of a chain that takes too long to say what accounts hold. */
const noBalances = (chain: Chain) => () =>
  new ChainFault("rpc_unreachable", { detail: `no balances from ${chain.chain} within ${BALANCES_WITHIN_MS} ms` });
