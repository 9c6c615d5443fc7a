import type { Address, Hex } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { parseNetworks } from "../runtime/networks/read-networks.ts";
import type { ChainClient } from "./chain-client.ts";
import { usdcAbi } from "./circle-artifacts.ts";
import type { Contracts } from "./usdc.ts";

export type KeyPair = { address: Address; privateKey: Hex };

export type ChainKeys = {
  treasury: KeyPair;
  lanes: KeyPair[];
  /** Suffix of the variable names; not empty only when keys of several chains share one environment. */
  suffix: string;
  /** The variables that the networks document names: TREASURY_KEY, LANE_KEY_0, LANE_KEY_1 and so on. */
  env: Record<string, string>;
};

/** Generates a key. */
export function newKey(): KeyPair {
  const privateKey = generatePrivateKey();
  return { address: privateKeyToAddress(privateKey), privateKey };
}

/** Generates keys for a treasury and a number of lanes. */
export function newChainKeys(lanes = 1, suffix = ""): ChainKeys {
  const treasury = newKey();
  const keys = Array.from({ length: lanes }, newKey);
  const env = Object.fromEntries(keys.map((key, index) => [`LANE_KEY_${index}${suffix}`, key.privateKey]));
  return { treasury, lanes: keys, suffix, env: { [`TREASURY_KEY${suffix}`]: treasury.privateKey, ...env } };
}

export type NetworkOptions = {
  chain: ChainClient;
  contracts: Contracts;
  keys: ChainKeys;
  /** Where the service reaches the chain: one URL, or several to test failover. */
  rpcUrls: readonly string[];
  /** Where the first endpoint announces blocks. */
  wsUrl?: string | undefined;
  blockMs?: number;
  /** Members of the chain's entry to replace. */
  change?: Record<string, unknown>;
};

/** Returns the networks document of local chains. `describeSolana` returns the entries of Solana chains. */
export async function networksDocument(
  deployment: string,
  chains: readonly NetworkOptions[],
  solana: readonly Record<string, unknown>[] = [],
): Promise<Record<string, unknown>> {
  const document = { deployment, chains: [...(await Promise.all(chains.map(describeNetwork))), ...solana] };
  parseNetworks(document);
  return document;
}

/** Returns the entry of one chain, with the token's name, symbol and version as read from the chain. */
async function describeNetwork(options: NetworkOptions): Promise<Record<string, unknown>> {
  const { chain, contracts, keys } = options;
  const caip = `eip155:${await chain.getChainId()}`;
  const token = { address: contracts.token, abi: usdcAbi } as const;
  const name = await chain.readContract({ ...token, functionName: "name" });
  const version = await chain.readContract({ ...token, functionName: "version" });
  const usdc = {
    asset: `${caip}/erc20:${contracts.token.toLowerCase()}`,
    symbol: await chain.readContract({ ...token, functionName: "symbol" }),
    name,
    decimals: await chain.readContract({ ...token, functionName: "decimals" }),
    kind: "eip3009",
    peg: "iso4217/USD",
    domain: { name, version },
  };
  const lanes = keys.lanes.map(({ address }, index) => ({ address, key: { env: `LANE_KEY_${index}${keys.suffix}` } }));
  return {
    chain: caip,
    name: "Local",
    rpc: options.rpcUrls.map((url, index) => ({
      name: `local-${index}`,
      url,
      ...(options.wsUrl !== undefined && index === 0 ? { wsUrl: options.wsUrl } : {}),
    })),
    blockMs: options.blockMs ?? 1_000,
    pollMs: 100,
    // Anvil makes a block only when there is a transaction.
    maxHeadAgeMs: null,
    finality: { blocks: 1 },
    multicall: contracts.multicall,
    // Anvil takes any fee.
    fees: { maxFeePerGas: "200000000000", priorityFeePerGas: "1000000000", maxTransactionFee: "2000000000000000000" },
    treasury: { address: keys.treasury.address, key: { env: `TREASURY_KEY${keys.suffix}` } },
    lanes,
    assets: [
      usdc,
      ...(contracts.otherTokens ?? []).map((other) => ({ ...usdc, asset: `${caip}/erc20:${other.toLowerCase()}` })),
    ],
    ...options.change,
  };
}
