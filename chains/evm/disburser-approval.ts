import { encodeFunctionData, type Hex, hexToBigInt } from "viem";
import { tokenAbi } from "./abi.ts";
import { simulateCalls } from "./multicall.ts";
import type { EvmChain } from "./open-evm-chain.ts";

/** Returns true if the treasury allows its Disburser to move the amount (minor units). Throws ChainError. */
export async function isApproved(chain: EvmChain, token: Hex, amount: bigint): Promise<boolean> {
  const args = [chain.treasury, chain.disburser] as const;
  const data = encodeFunctionData({ abi: tokenAbi, functionName: "allowance", args });
  const [answer] = await simulateCalls(chain.rpc, chain, [{ target: token, data }]);
  return answer?.ok === true && answer.data.length === 66 && hexToBigInt(answer.data) >= amount;
}
