import type { Network } from "../../runtime/networks/read-networks.ts";
import { openEvmFamily } from "./evm/evm-family.ts";
import type { Family, PreflightDeps } from "./family.ts";
import { openSolanaFamily } from "./solana/solana-family.ts";

/** Returns the family of a network. No other file outside evm/ and solana/ depends on it. */
export function openFamily(deps: PreflightDeps, network: Network): Family {
  return "multicall" in network ? openEvmFamily(deps, network) : openSolanaFamily(deps, network);
}
