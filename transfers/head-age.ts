import type { Network } from "../ops/networks.ts";

/** Without a word in the networks file a head may be this old, milliseconds, or so many block times, whichever is more. */
const USUAL_MS = 60_000;
const USUAL_BLOCKS = 10;

/**
 * Returns the age that a network's newest block may have for its endpoint to count as following the chain, milliseconds;
 * undefined for a network that makes blocks on demand, whose newest block may be of any age.
 */
export function maxHeadAge(network: Network): number | undefined {
  if (network.maxHeadAgeMs === null) return undefined;
  if (network.maxHeadAgeMs !== undefined) return network.maxHeadAgeMs;
  return Math.max(USUAL_MS, "blockMs" in network ? USUAL_BLOCKS * network.blockMs : 0);
}

/**
 * True when a newest block of this time is the head of a chain. One that is older than the network allows comes from an
 * endpoint that has stopped following the chain; one that is as far ahead says that our own clock is wrong.
 * @param at the block's own time; undefined when it is not known
 */
export function isLiveHead(network: Network, at: Date | undefined, now: Date): boolean {
  const allowed = maxHeadAge(network);
  if (allowed === undefined) return true;
  return at !== undefined && Math.abs(now.getTime() - at.getTime()) <= allowed;
}
