import { encodeFunctionData, type Hex, hexToBigInt, numberToHex } from "viem";
import { tokenAbi } from "./abi.ts";
import type { EvmChain } from "./open-evm-chain.ts";
import { throwChainError } from "./rpc-errors.ts";

/**
 * Returns an account's token balance at a block, in minor units. Throws ChainError `rpc_answer` if the node lacks that
 * state.
 */
export async function readTokenBalanceAt(
  { rpc }: Pick<EvmChain, "rpc">,
  args: { token: Hex; account: Hex; block: number },
): Promise<bigint> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: "balanceOf", args: [args.account] });
  const request = { to: args.token, data };
  const answer = await rpc({ method: "eth_call", params: [request, numberToHex(args.block)] }).catch(throwChainError);
  // The token contract did not exist at that block.
  return answer === "0x" ? 0n : hexToBigInt(answer);
}

/**
 * Returns an account's native balance at a block, in wei. Throws ChainError `rpc_answer` if the node lacks that state.
 */
export async function readNativeBalanceAt(
  { rpc }: Pick<EvmChain, "rpc">,
  args: { account: Hex; block: number },
): Promise<bigint> {
  return hexToBigInt(
    await rpc({ method: "eth_getBalance", params: [args.account, numberToHex(args.block)] }).catch(throwChainError),
  );
}
