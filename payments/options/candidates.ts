import { parseAccountId } from "../../chains/caip.ts";
import type { Chain } from "../../chains/open-chains.ts";
import { isAddress } from "../../chains/solana/ed25519-keys.ts";
import { evmAddressPattern } from "../../runtime/caip-patterns.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Payable } from "./payable-assets.ts";

/** An account that might pay with an asset. `quotedUntil` is the end of its earlier quote, if it has one. */
export type Candidate = Payable & { account: string; payer: string; quotedUntil: Date | null };

/** Returns true for a CAIP-10 account. Checks the form of the address on configured chains only. */
export function isUsableAccount({ chains }: Pick<PaymentDeps, "chains">, text: string): boolean {
  const account = parseAccountId(text);
  if (!account) return false;
  const family = chains.get(account.chain)?.family;
  if (family === "solana") return isAddress(account.address);
  return family === undefined || evmAddressPattern.test(account.address);
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
    const payer = chain.family === "evm" ? parsed.address.toLowerCase() : parsed.address;
    // Skip our own accounts, and duplicates that differ only in spelling.
    if (isOwn(chain, payer) || seen.has(`${chain.chain} ${payer}`)) return [];
    seen.add(`${chain.chain} ${payer}`);
    return payable.filter((way) => way.chain === chain).map((way) => ({ ...way, account, payer, quotedUntil: null }));
  });
}

function isOwn(chain: Chain, payer: string): boolean {
  return payer === chain.treasury || (chain.family === "solana" && chain.ours.has(payer));
}
