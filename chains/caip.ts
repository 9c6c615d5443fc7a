/** CAIP-10: an account on a chain. `address` is as the caller wrote it. */
export type AccountId = { chain: string; address: string };
/** CAIP-19 with an ERC-20 or an SPL token: the chain and the token's own address. */
export type AssetId = { chain: string; namespace: string; token: string };

const chainPattern = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/;

/** CAIP-2. */
export function isChainId(text: string): boolean {
  return chainPattern.test(text);
}

/** Splits a CAIP-10 account. Undefined when the text is not one; whether the address fits its chain is not asked. */
export function parseAccountId(text: string): AccountId | undefined {
  const at = text.lastIndexOf(":");
  const chain = text.slice(0, at);
  const address = text.slice(at + 1);
  if (at < 0 || !isChainId(chain) || !/^[-.%a-zA-Z0-9]{1,128}$/.test(address)) return undefined;
  return { chain, address };
}

/** Splits a CAIP-19 asset. Undefined when the text is not one. */
export function parseAssetId(text: string): AssetId | undefined {
  const match = /^([-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32})\/([-a-z0-9]{3,8}):([-.%a-zA-Z0-9]{1,128})$/.exec(text);
  const [, chain, namespace, token] = match ?? [];
  return chain && namespace && token ? { chain, namespace, token } : undefined;
}

/** Native assets by CAIP-2 namespace: the coin types of SLIP-44 that stand for them in CAIP-19. */
const nativeCoins: Readonly<Record<string, number>> = { eip155: 60, solana: 501 };

/** CAIP-19 of a chain's native asset, in which fees are paid. Throws for a namespace that is not known here. */
export function nativeAsset(chain: string): string {
  const coin = nativeCoins[chain.split(":")[0] ?? ""];
  if (coin === undefined) throw new Error(`the native asset of ${chain} is not known`);
  return `${chain}/slip44:${coin}`;
}

/** An asset as we compare it: addresses of EVM without regard to case, those of other chains as they are. */
export function canonicalAsset(asset: string): string {
  return asset.toLowerCase().startsWith("eip155:") ? asset.toLowerCase() : asset;
}
