import { findChainDriver, getChainDriver } from "./find-chain-driver.ts";

/** Returns the form in which assets are compared. EVM addresses ignore case; other chains' addresses do not. */
export function canonicalAsset(asset: string): string {
  return findChainDriver(asset.toLowerCase())?.normalizeAsset(asset) ?? asset;
}

/** Returns the form in which rows store an address. Leaves addresses of unknown chain families as they are. */
export function canonicalAddress(chain: string, address: string): string {
  return findChainDriver(chain)?.normalizeAddress(address) ?? address;
}

/** Returns the CAIP-19 of a token. */
export function tokenAsset(chain: string, token: string): string {
  return `${chain}/${getChainDriver(chain).tokenNamespace}:${token}`;
}

/** Returns the CAIP-19 of a chain's native asset, which pays for fees. */
export function nativeAsset(chain: string): string {
  return `${chain}/slip44:${getChainDriver(chain).nativeCoin}`;
}
