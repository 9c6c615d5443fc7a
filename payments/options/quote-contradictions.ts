import { deriveNonce, paymentKey } from "../../chains/natural-key.ts";
import type { Token } from "../../chains/open-chains.ts";
import type { OptionRow } from "../../db/queries/payment-options.ts";
import { scaleDown, toTokenAmount } from "../money.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { type Rates, readRates } from "./prices.ts";

/** What a payment asks for: `value` in minor units of `unit`. */
type AskedPayment = { id: string; merchant_id: string; unit: string; value: bigint };

/** A quote with its payment. */
type Quoted = { quote: OptionRow; payment: AskedPayment };

type Deps = Pick<PaymentDeps, "chains" | "networks" | "now" | "log">;

/**
 * A quote in another currency than the payment's may ask for this much less than the current price, percent. Currencies move less
 * within a day, and a watcher may read the money that late.
 */
const MAX_DISCOUNT = 5n;

/** What a quote contradicts; `price_unknown`: no price is available that it could be compared with. */
export type Contradiction = "token" | "nonce" | "amount" | "owed" | "price_unknown";

/**
 * Returns the quotes that contradict their payments, and in what. The api writes quotes, and workers move and credit money by them:
 * a thief of the api's database login must not have a payment succeed for less than it asks for, nor a merchant credited with more.
 * Reads prices on chain, for quotes in another currency than their payment's.
 */
export async function findContradictions<Q extends Quoted>(
  deps: Deps,
  quoted: readonly Q[],
): Promise<Map<Q, Contradiction>> {
  const priced = quoted.filter((one) => isPriced(deps, one));
  const ratesOf = new Map<string, Rates>();
  for (const [unit, some] of Map.groupBy(priced, ({ payment }) => payment.unit)) {
    const pegs = some.flatMap(({ quote }) => findToken(deps, quote)?.peg ?? []);
    // What cannot be compared now is not paid by, and holds nothing up.
    ratesOf.set(unit, (await readRates(deps, unit, pegs)).rates);
  }
  return new Map(
    quoted.flatMap((one): [Q, Contradiction][] => {
      const found = findContradiction(deps, one, ratesOf.get(one.payment.unit) ?? new Map());
      return found ? [[one, found]] : [];
    }),
  );
}

/** Counts and logs quotes that contradict their payments. An operator must find out who has written them. */
export function reportContradictions(
  deps: Pick<PaymentDeps, "log" | "metrics">,
  found: ReadonlyMap<Quoted, Contradiction>,
): void {
  for (const [{ quote, payment }, contradiction] of found) {
    const of = { payment: payment.id, option: quote.id, contradiction };
    if (contradiction === "price_unknown") {
      deps.log.warn(of, "no price is available that a quote could be compared with");
      continue;
    }
    deps.metrics.quoteContradictions.inc({ chain: quote.chain });
    deps.log.error(of, "quote contradicts its payment; nothing is paid by it");
  }
}

/** Returns what a quote contradicts, at the given prices. Pure. */
function findContradiction(
  deps: Pick<Deps, "chains" | "networks">,
  { quote, payment }: Quoted,
  rates: Rates,
): Contradiction | undefined {
  const token = findToken(deps, quote);
  if (!token || token.token !== quote.token || token.kind !== quote.kind) return "token";
  const key = paymentKey({ merchantId: payment.merchant_id, paymentId: payment.id });
  if (quote.authorization_nonce !== deriveNonce(deps.networks.deployment, key)) return "nonce";
  const asked = toTokenAmount(payment, token, rates);
  if (!asked) return "price_unknown";
  const isEnough =
    asked.rate === null ? quote.amount === asked.value : quote.amount * 100n >= asked.value * (100n - MAX_DISCOUNT);
  if (!isEnough) return "amount";
  return isOwed(deps, quote, token) ? undefined : "owed";
}

/** Returns true for a quote in another currency than its payment's. */
function isPriced(deps: Pick<Deps, "chains">, { quote, payment }: Quoted): boolean {
  const token = findToken(deps, quote);
  return token !== undefined && toTokenAmount(payment, token) === undefined;
}

/** Returns true when the merchant is owed what the buyer pays without the fee, in this or in another asset of its currency. */
function isOwed({ chains }: Pick<Deps, "chains">, quote: OptionRow, token: Token): boolean {
  const { owed_asset: asset, owed_amount: amount } = quote;
  if (asset === null || amount === null) return true;
  const tokens = [...chains.values()].flatMap((chain): Token[] => [...chain.tokens.values()]);
  const owed = tokens.find((one) => one.asset === asset);
  return owed?.peg === token.peg && amount === scaleDown(quote.amount - quote.fee, token.decimals, owed.decimals);
}

function findToken({ chains }: Pick<Deps, "chains">, { chain, asset }: OptionRow): Token | undefined {
  return chains.get(chain)?.tokens.get(asset);
}
