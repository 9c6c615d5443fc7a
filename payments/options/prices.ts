import { isTransientChainError } from "../../chains/errors.ts";
import type { FeedState } from "../../chains/evm/price-feeds.ts";
import type { PriceFeed } from "../../runtime/networks/read-networks.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { findLastState, readFeedState } from "./feed-readings.ts";
import { validatePriceFeed } from "./validate-price-feed.ts";

/**
 * The price of one unit of a currency in units of another: `numerator` / `denominator`. `source` records the feed's
 * response for later audits.
 */
type Rate = { numerator: bigint; denominator: bigint; source: string };
/** The price of one unit of a payment's currency in other currencies, by their names (iso4217/USD). */
export type Rates = ReadonlyMap<string, Rate>;
/** `unread` holds, by currency, the transient errors of prices that cannot be read at the moment. */
type Prices = { rates: Rates; unread: ReadonlyMap<string, unknown> };

/** Lifetime of a quote, milliseconds. */
export const QUOTE_LIFETIME_MS = 120_000;
/** How old a price that quotes are compared with may become before it is read once more, milliseconds. */
const REFRESH_MS = 10 * 60_000;

type Deps = Pick<PaymentDeps, "chains" | "networks" | "metrics" | "now" | "log">;

/**
 * Reads on chain the exchange rates between a payment's currency and the given currencies. Omits, with a log line, a
 * price that is stale or inconsistent with the networks file: no price is better than a wrong one. Reports a price that
 * cannot be read at the moment as unread. Reads nothing for the payment's own currency, or for a currency without a feed.
 */
export async function readRates(deps: Deps, unit: string, currencies: Iterable<string>): Promise<Prices> {
  const rates = new Map<string, Rate>();
  const unread = new Map<string, unknown>();
  const others = [...new Set(currencies)].filter((currency) => currency !== unit);
  await Promise.all(
    others.map(async (currency) => {
      const source = deps.networks.prices.find(({ base, quote }) => joins(base, quote, unit, currency));
      if (!source) return;
      const rate = await readRate(deps, source, unit).catch((err: unknown) => {
        deps.log.warn({ err, base: source.base, quote: source.quote }, "price could not be read");
        if (isTransientChainError(err)) unread.set(currency, err);
        return undefined;
      });
      if (rate) rates.set(currency, rate);
    }),
  );
  return { rates, unread };
}

/** Returns true when a feed shows the price between two currencies. */
export function hasFeed({ networks }: Pick<Deps, "networks">, one: string, other: string): boolean {
  return networks.prices.some(({ base, quote }) => joins(base, quote, one, other));
}

/**
 * Returns the prices that this process has read last within a day, between a payment's currency and the given currencies. Reads
 * nothing. Only for comparisons: a price may be older than its feed allows.
 */
export function lastRates(deps: Omit<Deps, "metrics" | "log">, unit: string, currencies: Iterable<string>): Rates {
  const rates = new Map<string, Rate>();
  for (const currency of currencies) {
    const source = deps.networks.prices.find(({ base, quote }) => joins(base, quote, unit, currency));
    const state = source && findLastState(deps, source);
    if (!source || !state) continue;
    const { base, quote } = source;
    const error = validatePriceFeed({ base, quote, maxAgeSeconds: Number.POSITIVE_INFINITY }, state, deps.now());
    if (!error) rates.set(currency, toRate(source, state, unit));
  }
  return rates;
}

/** Reads the feeds that this process has not read within ten minutes, for `lastRates`. Never throws. */
export async function refreshFeeds(deps: Deps): Promise<void> {
  const due = deps.networks.prices.filter((source) => !findLastState(deps, source, REFRESH_MS));
  await Promise.allSettled(due.map((source) => readFeedState(deps, source)));
}

const joins = (base: string, quote: string, one: string, other: string) =>
  (base === one && quote === other) || (base === other && quote === one);

async function readRate(deps: Deps, source: PriceFeed, unit: string): Promise<Rate | undefined> {
  const found = await readValidFeed(deps, source);
  return found && toRate(source, found, unit);
}

function toRate(source: PriceFeed, { answer, decimals, description, updatedAt }: FeedState, unit: string): Rate {
  const one = 10n ** BigInt(decimals);
  const text = `${description} ${answer} / 10^${decimals} at ${updatedAt.toISOString()}`;
  return source.base === unit
    ? { numerator: answer, denominator: one, source: text }
    : { numerator: one, denominator: answer, source: text };
}

/** Reads a feed. Returns undefined, with a log line, for a price that must not be used. Throws ChainError. */
export async function readValidFeed(deps: Omit<Deps, "networks">, source: PriceFeed): Promise<FeedState | undefined> {
  const { state, error } = await readFeedState(deps, source);
  if (!error) return state;
  deps.log.error({ base: source.base, quote: source.quote, feed: source.feed }, `price not used: ${error}`);
  return undefined;
}
