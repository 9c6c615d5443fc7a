import type { Token } from "../../chains/chain.ts";
import { deriveNonce, paymentKey } from "../../chains/natural-key.ts";
import { findAsset } from "../../chains/open-chains.ts";
import { listAssetUnits } from "../../db/queries/asset-units.ts";
import type { OptionRow } from "../../db/queries/payment-options.ts";
import type { Db } from "../../db/tables.ts";
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
 * Reads no chain, because callers hold a database transaction: a quote in another currency than its payment's is compared with the
 * last price that this process has read (`refreshRates`), and not at all when there is none.
 * @param db the transaction of the caller
 */
export async function findContradictions<Q extends Quoted>(
  deps: Deps,
  db: Db,
  quoted: readonly Q[],
): Promise<Map<Q, Contradiction>> {
  const decimals = await readDelisted(deps, db, quoted);
  return new Map(
    quoted.flatMap((one): [Q, Contradiction][] => {
      const found = findContradiction(deps, one, decimals);
      return found ? [[one, found]] : [];
    }),
  );
}

/** Reads the decimals of assets, as workers have reported them, if a merchant is owed one that is not in the networks file. */
async function readDelisted(deps: Deps, db: Db, quoted: readonly Quoted[]): Promise<ReadonlyMap<string, number>> {
  const isDelisted = ({ quote }: Quoted) => quote.owed_asset !== null && !findAsset(deps.chains, quote.owed_asset);
  if (!quoted.some(isDelisted)) return new Map();
  return new Map((await listAssetUnits(db)).map(({ asset, decimals }) => [asset, decimals]));
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

function findContradiction(
  deps: Deps,
  { quote, payment }: Quoted,
  delisted: ReadonlyMap<string, number>,
): Contradiction | undefined {
  const key = paymentKey({ merchantId: payment.merchant_id, paymentId: payment.id });
  if (quote.authorization_nonce !== deriveNonce(deps.networks.deployment, key)) return "nonce";
  const token = findToken(deps, quote);
  // An asset that has left the networks file, or that this process does not know yet.
  if (!token) return undefined;
  if (token.token !== quote.token) return "token";
  if (!isEnough(deps, { quote, payment }, token)) return "amount";
  return isOwed(deps, quote, { token, delisted }) ? undefined : "owed";
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

/**
 * Returns true when the merchant is owed what the buyer pays without the fee, in this or in another asset of its currency. The currency
 * of an asset that has left the networks file is unknown; its payout waits until it is in the file again.
 * @param delisted the decimals of assets that workers know or have known
 */
function isOwed(
  deps: Pick<Deps, "chains">,
  quote: OptionRow,
  { token, delisted }: { token: Token; delisted: ReadonlyMap<string, number> },
): boolean {
  const { owed_asset: asset, owed_amount: amount } = quote;
  if (asset === null || amount === null) return true;
  const owed = findAsset(deps.chains, asset);
  const decimals = owed ? owed.decimals : delisted.get(asset);
  if (decimals === undefined || (owed && owed.peg !== token.peg)) return false;
  return amount === scaleDown(quote.amount - quote.fee, token.decimals, decimals);
}

function findToken({ chains }: Pick<Deps, "chains">, { chain, asset }: OptionRow): Token | undefined {
  return chains.get(chain)?.tokens.get(asset);
}
