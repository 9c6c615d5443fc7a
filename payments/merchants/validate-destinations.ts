import { parseAccountId, parseAssetId } from "../../chains/caip.ts";
import { canonicalAddress } from "../../chains/canonical-ids.ts";
import { findChainDriver } from "../../chains/find-chain-driver.ts";
import { screenAccounts } from "../../transfers/screen-accounts.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Destination } from "./destinations.ts";

/**
 * Optional dependencies: a command line has no open chains, and without a networks file our own accounts are unknown.
 */
export type CheckDeps = Partial<Pick<PaymentDeps, "networks" | "chains" | "screeningList" | "metrics">>;

/** Validates an asset (CAIP-19). Returns the error, which begins with the member's name, or undefined. */
export function validateAsset(text: string): string | undefined {
  const asset = parseAssetId(text);
  if (!asset) return "asset: expected a CAIP-19 asset such as eip155:8453/erc20:0x…";
  const error = findChainDriver(asset.chain)?.validateToken(asset);
  return error && `asset: ${error}`;
}

/** Validates a destination of a valid asset. Returns the error, which begins with the member's name, or undefined. */
export function validateDestination(deps: CheckDeps, entry: Destination): string | undefined {
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

/**
 * Returns the index of the first destination that screening rejects, if any. A command line cannot screen, but every
 * destination is screened again before each payout. Throws `ChainError` when the chain cannot be read.
 */
export async function findUnserved(
  { chains, screeningList, metrics }: CheckDeps,
  entries: readonly Destination[],
): Promise<number | undefined> {
  if (!chains || !screeningList || !metrics) return undefined;
  for (const [index, { destination }] of entries.entries()) {
    const account = parseAccountId(destination);
    const chain = chains.get(account?.chain ?? "");
    if (!account || !chain) continue;
    const address = canonicalAddress(chain.chain, account.address);
    if ((await screenAccounts({ screeningList, metrics }, chain, [address])).has(address)) return index;
  }
  return undefined;
}
