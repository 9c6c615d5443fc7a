import type { Metrics } from "../ops/metrics.ts";
import type { Networks } from "../ops/networks.ts";
import { checkEvmChain } from "./evm/check.ts";
import { type EvmChain, openEvmChain } from "./evm/open.ts";
import { ChainFault } from "./faults.ts";

/** Every network of the deployment, by CAIP-2. */
export type Chains = ReadonlyMap<string, EvmChain>;

/** Opens every network; nothing is asked of them yet. */
export function openChains(networks: Networks, metrics: Metrics): Chains {
  return new Map(networks.chains.map((network) => [network.chain, openEvmChain(network, metrics)]));
}

/** Compares what the networks file says of a chain with the chain. Throws ChainFault on a mismatch; see checkEvmChain. */
export async function checkChain(chains: Chains, id: string): Promise<void> {
  await checkEvmChain(getChain(chains, id));
}

/** A network that must be there, because a row names it. Throws ChainFault `unknown_chain`. */
export function getChain(chains: Chains, id: string): EvmChain {
  const chain = chains.get(id);
  if (!chain) throw new ChainFault("unknown_chain", { detail: id });
  return chain;
}
