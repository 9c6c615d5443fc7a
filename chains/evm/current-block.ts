import { encodeFunctionData, type Hex, parseAbi } from "viem";
import { multicallReadAbi } from "./abi.ts";
import type { Call } from "./multicall.ts";
import type { EvmChain } from "./open-evm-chain.ts";

/** Arbitrum's ArbSys. Precompiles have no real code, but nodes return one byte for them. */
export const ARB_SYS: Hex = "0x0000000000000000000000000000000000000064";

const arbSysAbi = parseAbi(["function arbBlockNumber() view returns (uint256)"]);

/**
 * Returns the call that reads the number of the block on which it runs. On Arbitrum, a contract's `block.number` is the parent
 * chain's, so Multicall3 returns that one (docs.arbitrum.io, "Block numbers and time").
 */
export function encodeBlockNumber({ network, multicall }: Pick<EvmChain, "network" | "multicall">): Call {
  if (network.feeModel === "arbitrum")
    return { target: ARB_SYS, data: encodeFunctionData({ abi: arbSysAbi, functionName: "arbBlockNumber" }) };
  return { target: multicall, data: encodeFunctionData({ abi: multicallReadAbi, functionName: "getBlockNumber" }) };
}
