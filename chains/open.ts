import type { Metrics } from "../ops/metrics.ts";
import type { Networks } from "../ops/networks.ts";
import { checkEvmChain } from "./evm/check.ts";
import { type EvmChain, type EvmToken, openEvmChain } from "./evm/open.ts";
import { ChainFault } from "./faults.ts";
import { checkSolanaChain } from "./solana/check.ts";
import { openSolanaChain, type SolanaChain, type SolanaToken } from "./solana/open.ts";

/** An opened network; `family` says of which kind. */
export type Chain = EvmChain | SolanaChain;
/** A token of one. */
export type Token = EvmToken | SolanaToken;
/** Every network of the deployment, by CAIP-2. */
export type Chains = ReadonlyMap<string, Chain>;

/** Opens every network; nothing is asked of them yet. */
export function openChains(networks: Networks, metrics: Metrics): Chains {
  return new Map(
    networks.chains.map((network): [string, Chain] => [
      network.chain,
      "multicall" in network ? openEvmChain(network, metrics) : openSolanaChain(network, metrics),
    ]),
  );
}

/**
 * Compares what the networks file says of a chain with the chain. Throws ChainFault on a mismatch; see checkEvmChain and
 * checkSolanaChain.
 */
export async function checkChain(chains: Chains, id: string): Promise<void> {
  const chain = getChain(chains, id);
  await (chain.family === "evm" ? checkEvmChain(chain) : checkSolanaChain(chain));
}

/** A network that must be there, because a row names it. Throws ChainFault `unknown_chain`. */
export function getChain(chains: Chains, id: string): Chain {
  const chain = chains.get(id);
  if (!chain) throw new ChainFault("unknown_chain", { detail: id });
  return chain;
}

/** A token that must be there, because a row names it. */
export function getToken(chain: Chain, asset: string): Token {
  const token = chain.tokens.get(asset);
  if (!token) throw new Error(`${asset} is no longer in the networks file, and a row names it`);
  return token;
}

/** The same for one that must be of EVM. */
export function getEvmChain(chains: Chains, id: string): EvmChain {
  const chain = getChain(chains, id);
  if (chain.family !== "evm") throw new Error(`${id} is not an EVM chain`);
  return chain;
}

/** The same for one that must be of Solana. */
export function getSolanaChain(chains: Chains, id: string): SolanaChain {
  const chain = getChain(chains, id);
  if (chain.family !== "solana") throw new Error(`${id} is not a Solana cluster`);
  return chain;
}
