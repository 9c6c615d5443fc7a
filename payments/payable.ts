import { canonicalAsset } from "../chains/caip.ts";
import type { Chain, Token } from "../chains/open.ts";
import type { Mode } from "../db/tables.ts";
import type { PaymentDeps } from "./deps.ts";
import { toTokenAmount } from "./money.ts";
import { type Rates, readRates } from "./prices.ts";

/** An asset that pays a payment, and how much of it, minor units; `rate` is the price where it is at one. */
export type Payable = {
  chain: Chain;
  token: Token;
  amount: bigint;
  rate: string | null;
  /** The asset that the merchant is owed in, where it is another one. */
  owed: Token | null;
};

/** What a payment asks for: minor units of a currency or an asset. */
type Asked = { unit: string; value: bigint };
/** Assets (CAIP-19) that a merchant is paid in, and those of them that take other assets of their currency too. */
type Settled = { settled: ReadonlySet<string>; takers: ReadonlySet<string> };
type Deps = Pick<PaymentDeps, "chains" | "networks" | "now" | "log">;

/** Beyond numeric(78,0), and beyond what a Solana token counts in; no account could pay it. */
const tooMuch = { evm: 10n ** 78n, solana: 2n ** 64n };

/**
 * Returns every asset that pays a payment, by network in the order of the networks file, at the present prices, which are
 * read on chain. The options of a wallet, the buyer's page and creation all decide by it.
 */
export async function findPayable(deps: Deps, asked: Asked, terms: Settled): Promise<Payable[]> {
  const rates = await readRates(deps, asked.unit, listPegs(deps, terms.settled));
  return listPayable(deps, asked, { ...terms, rates });
}

/** Pure: the same at given prices. */
export function listPayable(
  { chains }: Pick<Deps, "chains">,
  asked: Asked,
  { settled, takers, rates }: Settled & { rates: Rates },
): Payable[] {
  const others = listTakers(chains, asked, takers);
  return [...chains.values()].flatMap((chain) =>
    [...chain.tokens.values()].flatMap((token) => {
      const owed = settled.has(token.asset) ? null : others.get(token.peg);
      const amount = owed === undefined ? undefined : toTokenAmount(asked, token, rates);
      if (amount === undefined || amount.value >= tooMuch[chain.family]) return [];
      return [{ chain, token, amount: amount.value, rate: amount.rate, owed: owed ?? null }];
    }),
  );
}

/** False for what a wallet would send itself in test mode: nothing moves there, so nothing of it is offered. */
export function isOffered(mode: Mode, { kind }: Pick<Token, "kind">): boolean {
  return mode === "live" || kind !== "push";
}

/** Says why nothing pays a payment that `findPayable` found nothing for, for the merchant who asked. */
export function explainUnpayable(
  { chains }: Pick<Deps, "chains">,
  { unit }: Asked,
  { settled }: Pick<Settled, "settled">,
): string {
  if (settled.size === 0) return "amount: nothing can pay it, the merchant has no settlement destination";
  const tokens = listTokens(chains);
  const own = tokens.filter(({ asset }) => settled.has(asset));
  if (own.length === 0) return "amount: nothing can pay it, no network here has an asset that the merchant is paid in";
  if (unit.toLowerCase().startsWith("caip19/")) {
    const named = canonicalAsset(unit.slice("caip19/".length));
    if (!tokens.some(({ asset }) => asset === named)) return "amount.unit: no network here has this asset";
    if (!settled.has(named)) return "amount.unit: the merchant has no settlement destination for this asset";
  } else if (!own.some(({ peg }) => peg === unit)) {
    const pegs = [...new Set(own.map(({ peg }) => peg))].join(", ");
    return `amount.unit: there is no price of ${unit} in ${pegs}, which the merchant is paid in`;
  }
  return "amount.value: is more than any asset can pay";
}

/** By currency, the asset that a payment in another asset of it is owed in. One that asks for an asset gets no other. */
function listTakers(chains: Deps["chains"], { unit }: Asked, takers: ReadonlySet<string>): Map<string, Token> {
  if (takers.size === 0 || !unit.startsWith("iso4217/")) return new Map();
  const own = listTokens(chains).filter(({ asset }) => takers.has(asset));
  return new Map(own.map((token) => [token.peg, token]));
}

/** The currencies that the assets of a merchant stand for. */
function listPegs({ chains }: Pick<Deps, "chains">, settled: ReadonlySet<string>): string[] {
  const own = listTokens(chains).filter(({ asset }) => settled.has(asset));
  return own.map(({ peg }) => peg);
}

const listTokens = (chains: Deps["chains"]): Token[] =>
  [...chains.values()].flatMap((chain): Token[] => [...chain.tokens.values()]);
