import type { Hex } from "viem";
import { type FeedAnswer, readFeed } from "../chains/evm/feeds.ts";
import { getEvmChain } from "../chains/open.ts";
import type { PriceFeed } from "../ops/networks.ts";
import type { PaymentDeps } from "./deps.ts";

/**
 * So many units of a currency are worth one unit of another: `numerator` / `denominator`. `told` is what the feed said,
 * for whoever asks later.
 */
export type Rate = { numerator: bigint; denominator: bigint; told: string };
/** What one unit of a payment's currency is in others, by their names (iso4217/USD). */
export type Rates = ReadonlyMap<string, Rate>;

/** An option at a price lives so long, milliseconds. */
export const QUOTE_MS = 120_000;
/** A feed's clock may be so far ahead of ours, milliseconds. */
const AHEAD_MS = 60_000;

type Deps = Pick<PaymentDeps, "chains" | "networks" | "now" | "log">;

/**
 * The prices by which a payment in one currency can be paid with assets of others, read on chain. A price that is old,
 * cannot be had or is not what the networks file says is left out with a line in the log: no price is better than a
 * wrong one. Nothing is asked for the payment's own currency, nor for one that no feed connects it with.
 */
export async function readRates(deps: Deps, unit: string, currencies: Iterable<string>): Promise<Rates> {
  const rates = new Map<string, Rate>();
  const others = [...new Set(currencies)].filter((currency) => currency !== unit);
  await Promise.all(
    others.map(async (currency) => {
      const source = deps.networks.prices.find(({ base, quote }) => joins(base, quote, unit, currency));
      if (!source) return;
      const rate = await readRate(deps, source, unit).catch((err: unknown) => {
        deps.log.warn({ err, base: source.base, quote: source.quote }, "a price could not be read");
        return undefined;
      });
      if (rate) rates.set(currency, rate);
    }),
  );
  return rates;
}

const joins = (base: string, quote: string, one: string, other: string) =>
  (base === one && quote === other) || (base === other && quote === one);

async function readRate(deps: Deps, source: PriceFeed, unit: string): Promise<Rate | undefined> {
  const sequencer = source.sequencer?.feed as Hex | undefined;
  const found = await readFeed(getEvmChain(deps.chains, source.chain), source.feed as Hex, sequencer);
  const fault = findFeedFault(source, found, deps.now());
  if (fault) {
    deps.log.error({ base: source.base, quote: source.quote, feed: source.feed }, `a price is not used: ${fault}`);
    return undefined;
  }
  const { answer, decimals, description, updatedAt } = found;
  const one = 10n ** BigInt(decimals);
  const told = `${description} ${answer} / 10^${decimals} at ${updatedAt.toISOString()}`;
  return source.base === unit
    ? { numerator: answer, denominator: one, told }
    : { numerator: one, denominator: answer, told };
}

/** Pure: why a feed's answer must not be used; undefined when it may. */
export function findFeedFault(
  source: Pick<PriceFeed, "base" | "quote" | "maxAgeSeconds" | "sequencer">,
  { answer, decimals, updatedAt, description, sequencer }: FeedAnswer,
  now: Date,
): string | undefined {
  const { base, quote, maxAgeSeconds } = source;
  const expected = `${codeOf(base)} / ${codeOf(quote)}`;
  if (description !== expected) return `the feed calls itself "${description}" and not "${expected}"`;
  if (decimals > 36) return `the feed has ${decimals} decimals`;
  if (answer <= 0n) return `the feed says ${answer}`;
  const age = now.getTime() - updatedAt.getTime();
  if (age > maxAgeSeconds * 1_000) return `it is ${Math.round(age / 1_000)} seconds old`;
  if (age < -AHEAD_MS) return "it is of a time to come";
  return source.sequencer && findSequencerFault(source.sequencer, sequencer, now);
}

/**
 * After an outage the prices of the time before it are still the newest for a while, so that nothing is used until the
 * feeds have had time to be told (docs.chain.link, "L2 Sequencer Uptime Feeds").
 */
function findSequencerFault(
  { graceSeconds }: NonNullable<PriceFeed["sequencer"]>,
  answer: FeedAnswer["sequencer"],
  now: Date,
): string | undefined {
  if (!answer?.isUp) return "the sequencer of its chain is down";
  const seconds = Math.floor((now.getTime() - answer.since.getTime()) / 1_000);
  return seconds <= graceSeconds ? `the sequencer of its chain is up for ${seconds} seconds only` : undefined;
}

const codeOf = (currency: string) => currency.slice("iso4217/".length);
