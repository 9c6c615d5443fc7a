import { parseAccountId } from "../../chains/caip.ts";
import { canonicalAddress } from "../../chains/canonical-ids.ts";
import type { Chain } from "../../chains/chain.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Payable, PayableAssets } from "./payable-assets.ts";

/** An account, in the wallet's spelling and the canonical one. */
type Payer = { account: string; payer: string };
/** An account that might pay with an asset. `quotedUntil` is the end of its earlier quote, if it has one. */
export type Candidate = Payable & Payer & { quotedUntil: Date | null };
/** An account and an asset, which have at most one quote at a time. */
export type Pair = Pick<Candidate, "payer" | "token">;
/** A candidate's amount and rate; those of a quote hold until `quotedUntil`. */
export type Price = Pick<Candidate, "amount" | "rate" | "quotedUntil">;

/** A wallet's account on a configured chain. `text` is the wallet's spelling, CAIP-10; `payer` is the canonical address. */
type Account = { text: string; chain: Chain; payer: string };

/**
 * Reads the accounts that a wallet names. `accounts` are those on configured chains, in the wallet's order, each once.
 * `malformed` is the number of texts that are no accounts. An account on another chain is in neither list, because its form is
 * unknown.
 */
export function readAccounts(
  { chains }: Pick<PaymentDeps, "chains">,
  texts: readonly string[],
): { accounts: Account[]; malformed: number } {
  const accounts = new Map<string, Account>();
  let malformed = 0;
  for (const text of texts) {
    const parsed = parseAccountId(text);
    const chain = parsed && chains.get(parsed.chain);
    if (parsed && !chain) continue;
    if (!parsed || !chain || !getChainDriver(chain.chain).isAddress(parsed.address)) {
      malformed += 1;
      continue;
    }
    const payer = canonicalAddress(chain.chain, parsed.address);
    // Two spellings of one address are one account.
    const key = `${chain.chain} ${payer}`;
    if (!accounts.has(key)) accounts.set(key, { text, chain, payer });
  }
  return { accounts: [...accounts.values()], malformed };
}

/**
 * Returns every pair of an account and an asset on its chain that can pay the payment, at the price of the pair's quote if it
 * has a valid one. Skips our own accounts. `isPriceMissing`: for some pair there is neither a price nor a valid quote.
 * @param quotedPriceOf returns the price of a pair's valid quote, or undefined
 */
export function listCandidates(
  { payable, unpriced }: Pick<PayableAssets, "payable" | "unpriced">,
  accounts: readonly Account[],
  quotedPriceOf: (pair: Pair) => Price | undefined,
): { candidates: Candidate[]; isPriceMissing: boolean } {
  const priced = pairWithAccounts(payable, accounts).map((pair) => {
    return { ...pair, quotedUntil: null, ...(pair.rate !== null && quotedPriceOf(pair)) };
  });
  const waiting = pairWithAccounts(unpriced, accounts);
  const quoted = waiting.flatMap((pair) => {
    const price = quotedPriceOf(pair);
    return price ? [{ ...pair, ...price }] : [];
  });
  return { candidates: [...priced, ...quoted], isPriceMissing: quoted.length < waiting.length };
}

function pairWithAccounts<A extends { chain: Chain }>(
  assets: readonly A[],
  accounts: readonly Account[],
): (A & Payer)[] {
  return accounts
    .filter(({ chain, payer }) => !chain.ours.has(payer))
    .flatMap(({ text, chain, payer }) =>
      assets.filter((asset) => asset.chain === chain).map((asset) => ({ ...asset, account: text, payer })),
    );
}
