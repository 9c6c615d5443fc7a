import { parseAccountId } from "../chains/caip.ts";
import type { Chain, Token } from "../chains/open.ts";
import { isAddress } from "../chains/solana/keys.ts";
import type { PaymentWithMerchant } from "../db/payments.ts";
import type { PaymentDeps } from "./deps.ts";
import { toTokenAmount } from "./money.ts";
import type { Rates } from "./prices.ts";

/**
 * An account that might pay with a token, and how much of it, minor units; `rate` is the price where it is at one, and
 * `quotedUntil` when that ends, where it was quoted before.
 */
export type Candidate = {
  account: string;
  payer: string;
  chain: Chain;
  token: Token;
  amount: bigint;
  rate: string | null;
  quotedUntil: Date | null;
  /** The asset that the merchant is owed in, where it is another one. */
  owed: Token | null;
};

/** Beyond numeric(78,0), and beyond what a Solana token counts in; no account could pay it. */
const tooMuch = { evm: 10n ** 78n, solana: 2n ** 64n };

/** What an address looks like is known of our own chains only; on any other it is the wallet's business. */
export function isUsableAccount({ chains }: Pick<PaymentDeps, "chains">, text: string): boolean {
  const account = parseAccountId(text);
  if (!account) return false;
  const family = chains.get(account.chain)?.family;
  if (family === "solana") return isAddress(account.address);
  return family === undefined || /^0x[0-9a-fA-F]{40}$/.test(account.address);
}

/** Every pair of an account (CAIP-10) and an asset that the merchant is paid in, on the chains we know. */
export function listCandidates(
  deps: Pick<PaymentDeps, "chains">,
  payment: PaymentWithMerchant,
  accounts: readonly string[],
  { settled, takers, rates }: { settled: ReadonlySet<string>; takers: ReadonlySet<string>; rates: Rates },
): Candidate[] {
  const others = listTakers(deps, payment, takers);
  const seen = new Set<string>();
  return accounts.flatMap((account) => {
    const parsed = parseAccountId(account);
    const chain = parsed && deps.chains.get(parsed.chain);
    if (!parsed || !chain) return [];
    const payer = chain.family === "evm" ? parsed.address.toLowerCase() : parsed.address;
    // Our own money cannot pay us, and the same account in another spelling is the same account.
    if (isOwn(chain, payer) || seen.has(`${chain.chain} ${payer}`)) return [];
    seen.add(`${chain.chain} ${payer}`);
    return [...chain.tokens.values()].flatMap((token) => {
      const owed = settled.has(token.asset) ? null : others.get(token.peg);
      const amount = owed === undefined ? undefined : toTokenAmount(payment, token, rates);
      if (amount === undefined || amount.value >= tooMuch[chain.family]) return [];
      const { value, rate } = amount;
      return [{ account, payer, chain, token, amount: value, rate, quotedUntil: null, owed: owed ?? null }];
    });
  });
}

/** By currency, the asset that a payment in another asset of it is owed in. One that asks for an asset gets no other. */
function listTakers(
  { chains }: Pick<PaymentDeps, "chains">,
  { unit }: Pick<PaymentWithMerchant, "unit">,
  takers: ReadonlySet<string>,
): Map<string, Token> {
  if (takers.size === 0 || !unit.startsWith("iso4217/")) return new Map();
  const tokens = [...chains.values()].flatMap((chain): Token[] => [...chain.tokens.values()]);
  return new Map(tokens.filter(({ asset }) => takers.has(asset)).map((token) => [token.peg, token]));
}

function isOwn(chain: Chain, payer: string): boolean {
  return payer === chain.treasury || (chain.family === "solana" && chain.ours.has(payer));
}
