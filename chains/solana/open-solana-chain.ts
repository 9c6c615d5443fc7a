import type { Metrics } from "../../runtime/metrics.ts";
import type { SolanaAsset, SolanaNetwork } from "../../runtime/networks/read-networks.ts";
import { parseAssetId } from "../caip.ts";
import type { EndpointStatus } from "../endpoint-status.ts";
import { findTokenAccount } from "./build-payment.ts";
import { openEndpoints, type SolanaRpc } from "./solana-rpc.ts";

/** A token: its entry of the networks file, its mint, and the treasury's token account. */
export type SolanaToken = SolanaAsset & { token: string; treasuryAccount: string };

/** An opened Solana cluster. Addresses are base58. */
export type SolanaChain = {
  namespace: "solana";
  chain: string;
  network: SolanaNetwork;
  rpc: SolanaRpc;
  /** Checks that every endpoint serves this cluster. Throws ChainError `wrong_chain`. */
  checkEndpoints: () => Promise<void>;
  /** Returns how each endpoint has done. Sends no request. */
  listEndpointStatuses: () => EndpointStatus[];
  treasury: string;
  /** The relayers. Any of them may pay the fee of a transaction. */
  lanes: readonly string[];
  /** By CAIP-19 id. */
  tokens: ReadonlyMap<string, SolanaToken>;
  /** All our accounts. A buyer's transaction may name them only where we put them. */
  ours: ReadonlySet<string>;
};

/** Opens a cluster without sending a request. */
export function openSolanaChain(network: SolanaNetwork, metrics: Metrics): SolanaChain {
  const { rpc, check, listStatuses } = openEndpoints(network, metrics);
  return {
    namespace: "solana",
    chain: network.chain,
    network,
    rpc,
    checkEndpoints: check,
    listEndpointStatuses: listStatuses,
    ...accountsOf({ network }, network.treasury.address),
    lanes: network.lanes.map(({ address }) => address),
  };
}

/** Returns a treasury, its token accounts, and all accounts of the deployment, as members of a chain. */
export function accountsOf(
  { network }: Pick<SolanaChain, "network">,
  treasury: string,
): Pick<SolanaChain, "treasury" | "tokens" | "ours"> {
  const tokens = network.assets.map((entry): SolanaToken => {
    const token = parseAssetId(entry.asset)?.token ?? "";
    return { ...entry, token, treasuryAccount: findTokenAccount(treasury, token, entry.program) };
  });
  const lanes = network.lanes.map(({ address }) => address);
  return {
    treasury,
    tokens: new Map(tokens.map((token) => [token.asset, token])),
    ours: new Set([treasury, ...lanes, ...tokens.map(({ treasuryAccount }) => treasuryAccount)]),
  };
}

/** Returns the token that a row names. Throws if the networks file lacks it. */
export function getSolanaToken(chain: SolanaChain, asset: string): SolanaToken {
  const token = chain.tokens.get(asset);
  if (!token) throw new Error(`${asset} is used in the database but missing from the networks file`);
  return token;
}
