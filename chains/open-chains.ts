import type { Metrics } from "../runtime/metrics.ts";
import type { Networks } from "../runtime/networks/read-networks.ts";
import type { Chain, Chains, Token } from "./chain.ts";
import { ChainError } from "./errors.ts";
import type { EvmChain } from "./evm/open-evm-chain.ts";
import { getChainDriver } from "./find-chain-driver.ts";
import type { SolanaChain } from "./solana/open-solana-chain.ts";

/** Opens every network without sending a request. */
export function openChains(networks: Networks, metrics: Metrics): Chains {
  return new Map(
    networks.chains.map((network): [string, Chain] => [
      network.chain,
      getChainDriver(network.chain).open(network, metrics),
    ]),
  );
}

/**
 * Compares the networks file's entry of a chain with the chain itself. Throws ChainError if they differ; see
 * `checkEvmChain` and `checkSolanaChain`.
 */
export async function checkChain(chains: Chains, id: string): Promise<void> {
  await getChainDriver(id).check(getChain(chains, id));
}

/** Closes what the chains hold open: the subscriptions to new blocks. */
export function closeChains(chains: Chains): void {
  for (const chain of chains.values()) if (chain.namespace === "eip155") chain.heads.close();
}

/** Returns the network that a row names. Throws ChainError `unknown_chain` if the networks file lacks it. */
export function getChain(chains: Chains, id: string): Chain {
  const chain = chains.get(id);
  if (!chain) throw new ChainError("unknown_chain", { detail: id });
  return chain;
}

/** Returns a token of any network by its CAIP-19 id; undefined if the networks file lacks it. */
export function findAsset(chains: Chains, asset: string): Token | undefined {
  for (const chain of chains.values()) {
    const token = chain.tokens.get(asset);
    if (token) return token;
  }
  return undefined;
}

/** Returns the token that a row names. Throws if the networks file lacks it. */
export function getToken(chain: Chain, asset: string): Token {
  const token = chain.tokens.get(asset);
  if (!token) throw new Error(`${asset} is used in the database but missing from the networks file`);
  return token;
}

/** Returns the EVM network that a row names. Throws ChainError `unknown_chain`, or an Error for another family. */
export function getEvmChain(chains: Chains, id: string): EvmChain {
  const chain = getChain(chains, id);
  if (chain.namespace !== "eip155") throw new Error(`${id} is not an EVM chain`);
  return chain;
}

/** Returns the Solana cluster that a row names. Throws ChainError `unknown_chain`, or an Error for another family. */
export function getSolanaChain(chains: Chains, id: string): SolanaChain {
  const chain = getChain(chains, id);
  if (chain.namespace !== "solana") throw new Error(`${id} is not a Solana cluster`);
  return chain;
}
