/** How many endpoints a network has; one that is named twice is one. */
export function countEndpoints({ rpc }: { rpc: readonly { url: string }[] }): number {
  return new Set(rpc.map(({ url }) => url)).size;
}

/** Whole units from which two endpoints have to agree, where an asset names no amount. */
const AGREE_FROM_UNITS = 10_000n;

/** The amount from which two endpoints have to agree on a movement of an asset, minor units; undefined for never. */
export function readAgreeFrom(
  network: { rpc: readonly unknown[] },
  asset: { decimals: number; agreeFrom?: string | null | undefined },
): bigint | undefined {
  if (network.rpc.length < 2 || asset.agreeFrom === null) return undefined;
  return asset.agreeFrom === undefined ? AGREE_FROM_UNITS * 10n ** BigInt(asset.decimals) : BigInt(asset.agreeFrom);
}
