/** Returns the number of a network's endpoints. A URL that is listed twice counts once. */
export function countEndpoints({ rpc }: { rpc: readonly { url: string }[] }): number {
  return new Set(rpc.map(({ url }) => url)).size;
}

/** Default of an asset's `agreementThreshold`, in whole units. */
const DEFAULT_AGREE_FROM_UNITS = 10_000n;

/**
 * Returns the amount in minor units from which two endpoints must agree on a movement, or undefined if they never must.
 */
export function readAgreementThreshold(
  network: { rpc: readonly unknown[] },
  asset: { decimals: number; agreementThreshold?: string | null | undefined },
): bigint | undefined {
  if (network.rpc.length < 2 || asset.agreementThreshold === null) return undefined;
  return asset.agreementThreshold === undefined
    ? DEFAULT_AGREE_FROM_UNITS * 10n ** BigInt(asset.decimals)
    : BigInt(asset.agreementThreshold);
}

/** The price that a feed shows. `answer` has `decimals` decimals, and `description` names the pair. */
export type FeedPrice = { answer: bigint; decimals: number; description: string };

/** Returns true when two states are of the same feed and their answers differ by at most this many percent. Pure. */
export function isSamePrice(one: FeedPrice, other: FeedPrice, percent: bigint): boolean {
  if (one.decimals !== other.decimals || one.description !== other.description) return false;
  const [low, high] = one.answer < other.answer ? [one.answer, other.answer] : [other.answer, one.answer];
  return low === high || (high - low) * 100n <= high * percent;
}
