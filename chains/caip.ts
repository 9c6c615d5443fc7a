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
