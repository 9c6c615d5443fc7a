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
