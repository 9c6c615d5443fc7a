import { accountAddressPattern, assetPattern, chainIdPattern } from "../runtime/caip-patterns.ts";

/** An account on a chain (CAIP-10). `address` keeps the caller's spelling. */
export type AccountId = { chain: string; address: string };
/** A token on a chain (CAIP-19). `token` is the address of the ERC-20 contract or the SPL mint. */
export type AssetId = { chain: string; namespace: string; token: string };

/** Returns true if the text is a chain id (CAIP-2). */
export function isChainId(text: string): boolean {
  return chainIdPattern.test(text);
}

/**
 * Splits a CAIP-10 account, or returns undefined if the text is not one. Does not check that the address fits the
 * chain.
 */
export function parseAccountId(text: string): AccountId | undefined {
  const at = text.lastIndexOf(":");
  const chain = text.slice(0, at);
  const address = text.slice(at + 1);
  if (at < 0 || !isChainId(chain) || !accountAddressPattern.test(address)) return undefined;
  return { chain, address };
}

/** Splits a CAIP-19 asset, or returns undefined if the text is not one. */
export function parseAssetId(text: string): AssetId | undefined {
  const [, chain, namespace, token] = assetPattern.exec(text) ?? [];
  return chain && namespace && token ? { chain, namespace, token } : undefined;
}

/** SLIP-44 coin types of native assets, by CAIP-2 namespace. CAIP-19 names native assets by them. */
const nativeCoins: Readonly<Record<string, number>> = { eip155: 60, solana: 501 };

/** Returns the CAIP-19 of a chain's native asset, which pays for fees. Throws for an unknown CAIP-2 namespace. */
export function nativeAsset(chain: string): string {
  const coin = nativeCoins[chain.split(":")[0] ?? ""];
  if (coin === undefined) throw new Error(`the native asset of ${chain} is not known`);
  return `${chain}/slip44:${coin}`;
}

/** Returns the form in which assets are compared. EVM addresses ignore case; other chains' addresses do not. */
export function canonicalAsset(asset: string): string {
  return asset.toLowerCase().startsWith("eip155:") ? asset.toLowerCase() : asset;
}
