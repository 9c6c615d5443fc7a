import { parseAccountId, parseAssetId } from "../../chains/caip.ts";
import { findChainDriver } from "../../chains/find-chain-driver.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/**
 * An asset (CAIP-19) and the account (CAIP-10) on the same chain that it is paid out to (specification, 2.8), both as they
 * were given.
 */
export type Destination = { asset: string; destination: string };

/** Without a networks file, as on some command lines, the service's own accounts are unknown. */
export type ValidateDeps = Partial<Pick<PaymentDeps, "networks">>;

/** Validates an asset (CAIP-19). Returns the error, which begins with the member's name, or undefined. */
export function validateAsset(text: string): string | undefined {
  const asset = parseAssetId(text);
  if (!asset) return "asset: expected a CAIP-19 asset such as eip155:8453/erc20:0x…";
  const error = findChainDriver(asset.chain)?.validateToken(asset);
  return error && `asset: ${error}`;
}

/** Validates a destination of a valid asset. Returns the error, which begins with the member's name, or undefined. */
export function validateDestination(deps: ValidateDeps, entry: Destination): string | undefined {
  const asset = parseAssetId(entry.asset);
  const account = parseAccountId(entry.destination);
  if (!account) return "destination: expected a CAIP-10 account such as eip155:8453:0x…";
  if (account.chain !== asset?.chain) return "destination: is on another chain than the asset";
  const driver = findChainDriver(asset.chain);
  if (!driver) return undefined;
  const error = driver.validateAddress(account.address);
  if (error) return `destination: ${error}`;
  const address = driver.normalizeAddress(account.address);
  if (address === driver.normalizeAddress(asset.token)) return "destination: is the token's own contract";
  const network = deps.networks?.chains.find(({ chain }) => chain === asset.chain);
  const isOwn = network && driver.listOwnAddresses(network).includes(address);
  return isOwn ? "destination: is an account of the service itself" : undefined;
}
