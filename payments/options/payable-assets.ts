import { canonicalAsset } from "../../chains/canonical-ids.ts";
import type { Chain, Token } from "../../chains/chain.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import type { Mode } from "../../db/tables.ts";
import { toTokenAmount } from "../money.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { type Rates, readRates } from "./prices.ts";

/** An asset that a merchant accepts. */
type Accepted = {
  chain: Chain;
  token: Token;
  /** The asset that the merchant is owed, if it is another one. */
  owed: Token | null;
};
/** An asset that can pay a payment, and the amount in its minor units. `rate` is the exchange rate, if one applies. */
export type Payable = Accepted & { amount: bigint; rate: string | null };
/**
 * The assets that can pay a payment, in the order of the networks file. `unpriced` are those that may pay it once their price
 * can be read, and `outage` is the transient error that prevents it.
 */
export type PayableAssets = { payable: Payable[]; unpriced: Accepted[]; outage: unknown };

/** The amount that a payment asks for: minor units of a currency or an asset. */
type Asked = { unit: string; value: bigint };
/** Assets (CAIP-19) that a merchant is paid in. `takers` are those that also accept other assets of their currency. */
type Settled = { settled: ReadonlySet<string>; takers: ReadonlySet<string> };
type Deps = Pick<PaymentDeps, "chains" | "networks" | "metrics" | "now" | "log">;

/**
 * Returns every asset that can pay a payment, at current prices. Reads the prices on chain, at most once in a few seconds
 * each. The options of a wallet, the checkout page and the creation of payments all use this function.
 */
export async function findPayable(deps: Deps, asked: Asked, terms: Settled): Promise<PayableAssets> {
  const { rates, unread } = await readRates(deps, asked.unit, listPegs(deps, terms.settled));
  const accepted = listAccepted(deps, asked, terms);
  const [outage] = unread.values();
  return {
    payable: accepted.flatMap((one) => priceAsset(one, asked, rates) ?? []),
    unpriced: accepted.filter(({ token }) => unread.has(token.peg)),
    outage,
  };
}

/** Returns every asset that a merchant accepts for a payment, whatever its price. Pure. */
function listAccepted({ chains }: Pick<Deps, "chains">, asked: Asked, { settled, takers }: Settled): Accepted[] {
  const takersByPeg = listTakers(chains, asked, takers);
  return [...chains.values()].flatMap((chain) =>
    [...chain.tokens.values()].flatMap((token) => {
      const owed = settled.has(token.asset) ? null : takersByPeg.get(token.peg);
      return owed === undefined ? [] : [{ chain, token, owed }];
    }),
  );
}

/** Returns an asset with its amount at the given rates; undefined when it cannot pay. Pure. */
function priceAsset(accepted: Accepted, asked: Asked, rates: Rates): Payable | undefined {
  const { chain, token } = accepted;
  const amount = toTokenAmount(asked, token, rates);
  if (amount === undefined || amount.value > getChainDriver(chain.chain).maxAmount) return undefined;
  return { ...accepted, amount: amount.value, rate: amount.rate };
}

/** Returns false for a push asset in test mode: no money moves there, so the wallet has no transaction to send. */
export function isOffered(mode: Mode, { kind }: Pick<Token, "kind">): boolean {
  return mode === "live" || kind !== "push";
}

/** Explains to the merchant why no asset can pay a payment for which `findPayable` returned none. */
export function explainUnpayable(
  { chains }: Pick<Deps, "chains">,
  { unit }: Asked,
  { settled }: Pick<Settled, "settled">,
): string {
  if (settled.size === 0) return "amount: no asset can pay it, the merchant has no settlement destination";
  const tokens = listTokens(chains);
  const own = tokens.filter(({ asset }) => settled.has(asset));
  if (own.length === 0)
    return "amount: no asset can pay it, no configured network has an asset that the merchant is paid in";
  if (unit.toLowerCase().startsWith("caip19/")) {
    const named = canonicalAsset(unit.slice("caip19/".length));
    if (!tokens.some(({ asset }) => asset === named)) return "amount.unit: no configured network has this asset";
    if (!settled.has(named)) return "amount.unit: the merchant has no settlement destination for this asset";
  } else if (!own.some(({ peg }) => peg === unit)) {
    const pegs = [...new Set(own.map(({ peg }) => peg))].join(", ");
    return `amount.unit: this currency has no price in ${pegs}, which the merchant is paid in`;
  }
  return "amount.value: exceeds what any asset can pay";
}

/**
 * Returns, by currency, the asset that a payment made in another asset of that currency is owed in. Empty for an amount
 * that names an asset: it is paid in that asset only.
 */
function listTakers(chains: Deps["chains"], { unit }: Asked, takers: ReadonlySet<string>): Map<string, Token> {
  if (takers.size === 0 || !unit.startsWith("iso4217/")) return new Map();
  const own = listTokens(chains).filter(({ asset }) => takers.has(asset));
  return new Map(own.map((token) => [token.peg, token]));
}

/** Returns the peg currencies of a merchant's assets. */
function listPegs({ chains }: Pick<Deps, "chains">, settled: ReadonlySet<string>): string[] {
  const own = listTokens(chains).filter(({ asset }) => settled.has(asset));
  return own.map(({ peg }) => peg);
}

const listTokens = (chains: Deps["chains"]): Token[] =>
  [...chains.values()].flatMap((chain): Token[] => [...chain.tokens.values()]);
