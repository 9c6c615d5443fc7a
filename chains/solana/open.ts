import type { Metrics } from "../../ops/metrics.ts";
import type { SolanaAsset, SolanaNetwork } from "../../ops/networks.ts";
import { parseAssetId } from "../caip.ts";
import { findTokenAccount } from "./payment.ts";
import { openEndpoints, type SolanaRpc } from "./rpc.ts";

/** A token as we use it: its networks file entry, its mint, and the treasury's account for it. */
export type SolanaToken = SolanaAsset & { token: string; treasuryAccount: string };

/** One Solana cluster, opened. Addresses are base58. */
export type SolanaChain = {
  family: "solana";
  chain: string;
  network: SolanaNetwork;
  rpc: SolanaRpc;
  /** Makes sure that every endpoint serves this cluster. Throws ChainFault `wrong_chain`. */
  checkEndpoints: () => Promise<void>;
  treasury: string;
  /** Relayers, any of which may pay the fee of a transaction. */
  lanes: readonly string[];
  /** By CAIP-19. */
  tokens: ReadonlyMap<string, SolanaToken>;
  /** Everything that is ours, which a buyer's transaction may name only where we put it. */
  ours: ReadonlySet<string>;
};

/** Opens a cluster without asking it anything yet. */
export function openSolanaChain(network: SolanaNetwork, metrics: Metrics): SolanaChain {
  const { rpc, check } = openEndpoints(network, metrics);
  const treasury = network.treasury.address;
  const lanes = network.lanes.map(({ address }) => address);
  const tokens = network.assets.map((entry): SolanaToken => {
    const token = parseAssetId(entry.asset)?.token ?? "";
    return { ...entry, token, treasuryAccount: findTokenAccount(treasury, token, entry.program) };
  });
  return {
    family: "solana",
    chain: network.chain,
    network,
    ...{ rpc, checkEndpoints: check },
    treasury,
    lanes,
    tokens: new Map(tokens.map((token) => [token.asset, token])),
    ours: new Set([treasury, ...lanes, ...tokens.map(({ treasuryAccount }) => treasuryAccount)]),
  };
}

/** A token that must be there, because a row names it. */
export function getSolanaToken(chain: SolanaChain, asset: string): SolanaToken {
  const token = chain.tokens.get(asset);
  if (!token) throw new Error(`${asset} is no longer in the networks file, and a row names it`);
  return token;
}
