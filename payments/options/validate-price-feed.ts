import type { FeedState } from "../../chains/evm/price-feeds.ts";
import type { PriceFeed } from "../../runtime/networks/read-networks.ts";

/** Tolerance for a feed whose clock is ahead of ours, milliseconds. */
const AHEAD_MS = 60_000;

/** Validates a feed's response. Returns the error, or undefined. Pure. */
export function validatePriceFeed(
  source: Pick<PriceFeed, "base" | "quote" | "maxAgeSeconds" | "sequencer">,
  { answer, decimals, updatedAt, description, sequencer }: FeedState,
  now: Date,
): string | undefined {
  const { base, quote, maxAgeSeconds } = source;
  const expected = `${codeOf(base)} / ${codeOf(quote)}`;
  if (description !== expected) return `the feed's description is "${description}", expected "${expected}"`;
  if (decimals > 36) return `the feed has ${decimals} decimals`;
  if (answer <= 0n) return `the feed's price is ${answer}`;
  const age = now.getTime() - updatedAt.getTime();
  // A comparison with a time that is none is false, so the condition is what a valid time fulfils.
  if (!(age <= maxAgeSeconds * 1_000)) return `the price is ${Math.round(age / 1_000)} seconds old`;
  if (age < -AHEAD_MS) return "the price has a timestamp in the future";
  return source.sequencer && validateSequencer(source.sequencer, sequencer, now);
}

/**
 * Validates the state of an L2 sequencer. After an outage a feed's newest price is stale for a while, so prices are
 * used only after a grace period (docs.chain.link, "L2 Sequencer Uptime Feeds").
 */
function validateSequencer(
  { graceSeconds }: NonNullable<PriceFeed["sequencer"]>,
  answer: FeedState["sequencer"],
  now: Date,
): string | undefined {
  if (!answer?.isUp) return "the sequencer of its chain is down";
  const seconds = Math.floor((now.getTime() - answer.since.getTime()) / 1_000);
  return seconds > graceSeconds ? undefined : `the sequencer of its chain has been up for only ${seconds} seconds`;
}

const codeOf = (currency: string) => currency.slice(currency.indexOf("/") + 1);
