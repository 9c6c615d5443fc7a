import { newSolanaKey, type SolanaKey } from "./solana-client.ts";
import type { Mint } from "./spl.ts";

export type SolanaChainKeys = {
  treasury: SolanaKey;
  lanes: SolanaKey[];
  /** The variables the networks document names: SOLANA_TREASURY_KEY, SOLANA_LANE_KEY_0 and so on. */
  env: Record<string, string>;
};

/** A treasury and so many relayers, all new. */
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
  /** Where the service reaches the cluster; the same twice when there is one only. */
  rpcUrls: readonly string[];
  slotMs: number;
  /** Members of the entry to be set otherwise. */
  change?: Record<string, unknown>;
};

/** What one transaction may offer for its priority, lamports. */
export const MAX_PRIORITY_FEE = 100_000n;

/** A Solana cluster's entry of the networks document. */
export function describeSolana({ id, mints, keys, rpcUrls, slotMs, change }: SolanaNetworkOptions) {
  const [first = ""] = rpcUrls;
  const urls = rpcUrls.length > 1 ? rpcUrls : [first, first];
  return {
    chain: id,
    name: "Local Solana",
    rpc: urls.map((url, index) => ({ name: `local-${index}`, url })),
    slotMs,
    // Its slots stand still where a test says so.
    maxHeadAgeMs: null,
    pollMs: Math.max(10, Math.min(200, Math.floor(slotMs / 2))),
    finality: "confirmed",
    maxPriorityFee: String(MAX_PRIORITY_FEE),
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
