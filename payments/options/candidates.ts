import { parseAccountId } from "../../chains/caip.ts";
import { canonicalAddress } from "../../chains/canonical-ids.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import type { Chain } from "../../chains/open-chains.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Payable } from "./payable-assets.ts";

/** An account that might pay with an asset. `quotedUntil` is the end of its earlier quote, if it has one. */
export type Candidate = Payable & { account: string; payer: string; quotedUntil: Date | null };

/** A wallet's account on a configured chain. `text` is the wallet's spelling, CAIP-10; `payer` is the canonical address. */
type Account = { text: string; chain: Chain; payer: string };

/**
 * Reads the accounts that a wallet names. `accounts` are those on configured chains, in the wallet's order, each once.
 * `malformed` are the texts that are no accounts. An account on another chain is in neither list, because its form is
 * unknown.
 */
export function readAccounts(
  { chains }: Pick<PaymentDeps, "chains">,
  texts: readonly string[],
): { accounts: Account[]; malformed: string[] } {
  const accounts = new Map<string, Account>();
  const malformed: string[] = [];
  for (const text of texts) {
    const parsed = parseAccountId(text);
    const chain = parsed && chains.get(parsed.chain);
    if (parsed && !chain) continue;
    if (!parsed || !chain || !getChainDriver(chain.chain).isAddress(parsed.address)) {
      malformed.push(text);
      continue;
    }
    const payer = canonicalAddress(chain.chain, parsed.address);
    // Two spellings of one address are one account.
    const key = `${chain.chain} ${payer}`;
    if (!accounts.has(key)) accounts.set(key, { text, chain, payer });
  }
  return { accounts: [...accounts.values()], malformed };
}

/** Returns every pair of an account and an asset on its chain that can pay the payment. Skips our own accounts. */
export function listCandidates(payable: readonly Payable[], accounts: readonly Account[]): Candidate[] {
  return accounts
    .filter(({ chain, payer }) => !chain.ours.has(payer))
    .flatMap(({ text, chain, payer }) =>
      payable.filter((way) => way.chain === chain).map((way) => ({ ...way, account: text, payer, quotedUntil: null })),
    );
}
