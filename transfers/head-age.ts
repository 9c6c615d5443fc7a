import { getChainDriver } from "../chains/find-chain-driver.ts";
import type { Network } from "../runtime/networks/read-networks.ts";

/** Default for the age of a head: this many milliseconds or this many block times, whichever is more. */
const DEFAULT_MS = 60_000;
const DEFAULT_BLOCKS = 10;

/**
 * Returns the highest age in milliseconds of a network's newest block at which its endpoint counts as following the chain.
 * Returns undefined for a network that makes blocks on demand, whose newest block can have any age.
 */
export function maxHeadAge(network: Network): number | undefined {
  if (network.maxHeadAgeMs === null) return undefined;
  if (network.maxHeadAgeMs !== undefined) return network.maxHeadAgeMs;
  return Math.max(DEFAULT_MS, DEFAULT_BLOCKS * getChainDriver(network.chain).blockMs(network));
}

/**
 * Returns true when a newest block with this time is the head of the chain. An older block comes from an endpoint that has
 * stopped following the chain; a block that is as far in the future means that this machine's clock is wrong.
 * @param at the block's timestamp, undefined when it is not known
 */
export function isLiveHead(network: Network, at: Date | undefined, now: Date): boolean {
  const allowed = maxHeadAge(network);
  if (allowed === undefined) return true;
  return at !== undefined && Math.abs(now.getTime() - at.getTime()) <= allowed;
}
