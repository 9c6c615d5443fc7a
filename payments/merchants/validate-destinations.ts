import { getAddress, isAddress } from "viem";
import { parseAccountId, parseAssetId } from "../../chains/caip.ts";
import { collectorAddress } from "../../chains/evm/collector-contract.ts";
import { disburserAddress } from "../../chains/evm/disburser-contract.ts";
import { findTokenAccount } from "../../chains/solana/build-payment.ts";
import { isAddress as isSolanaAddress } from "../../chains/solana/ed25519-keys.ts";
import { evmAddressPattern, evmChainPattern } from "../../runtime/caip-patterns.ts";
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
  if (asset.chain.startsWith("solana:")) {
    if (asset.namespace !== "token") return "asset: expected a token, such as solana:5eykt4U…/token:EPjFWdd5…";
    return isSolanaAddress(asset.token) ? undefined : "asset: expected a mint's address in base58";
  }
  if (!asset.chain.startsWith("eip155:")) return undefined;
  if (!evmChainPattern.test(asset.chain)) return "asset: expected a chain such as eip155:8453";
  if (asset.namespace !== "erc20") return "asset: expected a token, such as eip155:8453/erc20:0x…";
  const error = validateAddress(asset.token);
  return error && `asset: ${error}`;
}

/** Validates a destination of a valid asset. Returns the error, which begins with the member's name, or undefined. */
export function validateDestination(deps: CheckDeps, entry: Destination): string | undefined {
  const asset = parseAssetId(entry.asset);
  const account = parseAccountId(entry.destination);
  if (!account) return "destination: expected a CAIP-10 account such as eip155:8453:0x…";
  if (account.chain !== asset?.chain) return "destination: is on another chain than the asset";
  const isSolana = asset.chain.startsWith("solana:");
  if (!isSolana && !asset.chain.startsWith("eip155:")) return undefined;
  const notSolana = isSolanaAddress(account.address) ? undefined : "expected an address of 32 bytes in base58";
  const error = isSolana ? notSolana : validateAddress(account.address);
  if (error) return `destination: ${error}`;
  const address = isSolana ? account.address : account.address.toLowerCase();
  if (address === (isSolana ? asset.token : asset.token.toLowerCase()))
    return "destination: is the token's own contract";
  if (listOwn(deps, asset.chain).includes(address)) return "destination: is an account of the service itself";
  return undefined;
}

/**
 * Validates an EVM address. A mixed-case address carries a checksum (EIP-55); a wrong checksum indicates a typing
 * error.
 */
function validateAddress(address: string): string | undefined {
  if (!evmAddressPattern.test(address)) return "expected an address of 20 bytes in hex";
  if (/^0x0{40}$/.test(address)) return "is the zero address";
  const hasChecksum = /[a-f]/.test(address.slice(2)) && /[A-F]/.test(address.slice(2));
  return hasChecksum && !isAddress(address) ? "the address's checksum is wrong (EIP-55)" : undefined;
}

/**
 * Lists addresses where a payout would be lost or come back to us: our own accounts, and contracts from which either no
 * account or any account can take the money.
 */
function listOwn({ networks }: CheckDeps, chain: string): string[] {
  const network = networks?.chains.find((one) => one.chain === chain);
  if (!network) return [];
  const own = [network.treasury, ...network.lanes].map(({ address }) => address);
  if (!("multicall" in network)) {
    const { address } = network.treasury;
    const places = network.assets.map(({ asset, program }) =>
      findTokenAccount(address, parseAssetId(asset)?.token ?? "", program),
    );
    return [...own, ...places];
  }
  const [treasury, permit2] = [getAddress(network.treasury.address), getAddress(network.permit2)];
  const contracts = [permit2, collectorAddress({ treasury, permit2 }), disburserAddress(treasury)];
  return [...own, network.multicall, ...contracts].map((address) => address.toLowerCase());
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
    const address = chain.family === "evm" ? account.address.toLowerCase() : account.address;
    if ((await screenAccounts({ screeningList, metrics }, chain, [address])).has(address)) return index;
  }
  return undefined;
}
