import { parseAccountId } from "../../chains/caip.ts";
import { canonicalAddress } from "../../chains/canonical-ids.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Payable } from "./payable-assets.ts";

/** An account that might pay with an asset. `quotedUntil` is the end of its earlier quote, if it has one. */
export type Candidate = Payable & { account: string; payer: string; quotedUntil: Date | null };

/** Returns true for a CAIP-10 account. Checks the form of the address on configured chains only. */
export function isUsableAccount({ chains }: Pick<PaymentDeps, "chains">, text: string): boolean {
  const account = parseAccountId(text);
  if (!account) return false;
  return !chains.has(account.chain) || getChainDriver(account.chain).isAddress(account.address);
}

/** Returns every pair of an account (CAIP-10) and an asset on its chain that can pay the payment. */
export function listCandidates(
  deps: Pick<PaymentDeps, "chains">,
  payable: readonly Payable[],
  accounts: readonly string[],
): Candidate[] {
  const seen = new Set<string>();
  return accounts.flatMap((account) => {
    const parsed = parseAccountId(account);
    const chain = parsed && deps.chains.get(parsed.chain);
    if (!parsed || !chain) return [];
    const payer = canonicalAddress(chain.chain, parsed.address);
    // Skip our own accounts, and duplicates that differ only in spelling.
    if (chain.ours.has(payer) || seen.has(`${chain.chain} ${payer}`)) return [];
    seen.add(`${chain.chain} ${payer}`);
    return payable.filter((way) => way.chain === chain).map((way) => ({ ...way, account, payer, quotedUntil: null }));
  });
}
