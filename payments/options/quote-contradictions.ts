import { deriveNonce, paymentKey } from "../../chains/natural-key.ts";
import type { Token } from "../../chains/open-chains.ts";
import type { OptionRow } from "../../db/queries/payment-options.ts";
import { scaleDown, toTokenAmount } from "../money.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { hasFeed, lastRates, readRates } from "./prices.ts";

/** What a payment asks for: `value` in minor units of `unit`. */
type AskedPayment = { id: string; merchant_id: string; unit: string; value: bigint };

/** A quote with its payment. */
type Quoted = { quote: OptionRow; payment: AskedPayment };

type Deps = Pick<PaymentDeps, "chains" | "networks" | "now" | "log">;

/**
 * A quote in another currency than the payment's may ask for this much less than the last price that this process has read,
 * percent. Currencies move less within a day.
 */
const MAX_DISCOUNT = 5n;

/** What a quote contradicts. */
type Contradiction = "token" | "nonce" | "amount" | "owed";

/**
 * Returns the quotes that contradict their payments, and in what. The api writes quotes, and workers move and credit money by them:
 * a thief of the api's database login must not have a payment succeed for less than it asks for, nor a merchant credited with more.
 * Reads nothing, because callers hold a database transaction: a quote in another currency than its payment's is compared with the
 * last price that this process has read (`refreshRates`), and not at all when there is none.
 */
export function findContradictions<Q extends Quoted>(deps: Deps, quoted: readonly Q[]): Map<Q, Contradiction> {
  return new Map(
    quoted.flatMap((one): [Q, Contradiction][] => {
      const found = findContradiction(deps, one);
      return found ? [[one, found]] : [];
    }),
  );
}

/** Reads the prices of the quotes that have one, concurrently, for `findContradictions`. A price that cannot be read stays as it is. */
export async function refreshRates(
  deps: Deps & Pick<PaymentDeps, "metrics">,
  quoted: readonly Quoted[],
): Promise<void> {
  const priced = quoted.filter(({ quote }) => quote.rate !== null);
  const units = Map.groupBy(priced, ({ payment }) => payment.unit);
  await Promise.all(
    [...units].map(([unit, some]) => {
      const pegs = some.flatMap(({ quote }) => findToken(deps, quote)?.peg ?? []);
      return readRates(deps, unit, pegs);
    }),
  );
}

/** Counts and logs quotes that contradict their payments. An operator must find out who has written them. */
export function reportContradictions(
  deps: Pick<PaymentDeps, "log" | "metrics">,
  found: ReadonlyMap<Quoted, Contradiction>,
): void {
  for (const [{ quote, payment }, contradiction] of found) {
    deps.metrics.quoteContradictions.inc({ chain: quote.chain });
    const of = { payment: payment.id, option: quote.id, contradiction };
    deps.log.error(of, "quote contradicts its payment; nothing is paid by it");
  }
}

function findContradiction(deps: Deps, { quote, payment }: Quoted): Contradiction | undefined {
  const key = paymentKey({ merchantId: payment.merchant_id, paymentId: payment.id });
  if (quote.authorization_nonce !== deriveNonce(deps.networks.deployment, key)) return "nonce";
  const token = findToken(deps, quote);
  // An asset that has left the networks file, or that this process does not know yet.
  if (!token) return undefined;
  if (token.token !== quote.token) return "token";
  if (!isEnough(deps, { quote, payment }, token)) return "amount";
  return isOwed(deps, quote, token) ? undefined : "owed";
}

/** Returns true when a quote asks for what its payment asks for. */
function isEnough(deps: Deps, { quote, payment }: Quoted, token: Token): boolean {
  const exact = toTokenAmount(payment, token);
  if (exact) return quote.amount === exact.value;
  // The api stores the price of a quote, and makes none for a currency without a feed.
  if (quote.rate === null || !hasFeed(deps, payment.unit, token.peg)) return false;
  const asked = toTokenAmount(payment, token, lastRates(deps, payment.unit, [token.peg]));
  if (asked) return quote.amount * 100n >= asked.value * (100n - MAX_DISCOUNT);
  deps.log.warn(
    { payment: payment.id, option: quote.id },
    "no price has been read that a quote could be compared with",
  );
  return true;
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
