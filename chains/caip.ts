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
