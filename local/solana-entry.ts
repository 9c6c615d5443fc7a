import { newSolanaKey, type SolanaKey } from "./solana-client.ts";
import type { Mint } from "./spl-tokens.ts";

export type SolanaChainKeys = {
  treasury: SolanaKey;
  lanes: SolanaKey[];
  /** The variables that the networks document names: SOLANA_TREASURY_KEY, SOLANA_LANE_KEY_0 and so on. */
  env: Record<string, string>;
};

/** Generates keys for a treasury and a number of relayers. */
export function newSolanaKeys(lanes = 1): SolanaChainKeys {
  const treasury = newSolanaKey();
  const keys = Array.from({ length: lanes }, newSolanaKey);
  const env = Object.fromEntries(keys.map((key, index) => [`SOLANA_LANE_KEY_${index}`, key.secretKey]));
  return { treasury, lanes: keys, env: { SOLANA_TREASURY_KEY: treasury.secretKey, ...env } };
}

export type SolanaNetworkOptions = {
  /** CAIP-2. */
  id: string;
  mints: readonly Mint[];
  keys: SolanaChainKeys;
  /** Where the service reaches the cluster; a single URL is listed twice, because two are required. */
  rpcUrls: readonly string[];
  slotMs: number;
  /** Members of the entry to replace. */
  change?: Record<string, unknown>;
};

/** Most that one transaction may offer as a priority fee, lamports. */
export const MAX_PRIORITY_FEE = 100_000n;

/** Returns the entry of a Solana cluster in the networks document. */
export function describeSolana({ id, mints, keys, rpcUrls, slotMs, change }: SolanaNetworkOptions) {
  const [first = ""] = rpcUrls;
  const urls = rpcUrls.length > 1 ? rpcUrls : [first, first];
  return {
    chain: id,
    name: "Local Solana",
    rpc: urls.map((url, index) => ({ name: `local-${index}`, url })),
    slotMs,
    // Tests pause its slots.
    maxHeadAgeMs: null,
    pollMs: Math.min(200, slotMs),
    finality: "confirmed",
    maxPriorityFee: String(MAX_PRIORITY_FEE),
    // Its slots are never full.
    minPriorityFee: "0",
    treasury: { address: keys.treasury.address, key: { env: "SOLANA_TREASURY_KEY" } },
    lanes: keys.lanes.map(({ address }, index) => ({ address, key: { env: `SOLANA_LANE_KEY_${index}` } })),
    assets: mints.map((mint, index) => ({
      asset: `${id}/token:${mint.address}`,
      symbol: index === 0 ? "USDC" : `TOK${index}`,
      name: index === 0 ? "USD Coin" : `Token ${index}`,
      decimals: mint.decimals,
      program: mint.program.startsWith("Tokenz") ? "token-2022" : "token",
      peg: "iso4217/USD",
    })),
    ...change,
  };
}
