import { encodeFunctionData, type Hex, hexToBigInt, numberToHex } from "viem";
import { tokenAbi } from "./abi.ts";
import type { EvmChain } from "./open.ts";
import { throwFault } from "./rpc-errors.ts";

/** What an account held of a token at a block, minor units. Throws ChainFault `rpc_answer` when the node cannot say. */
export async function readTokenBalanceAt(
  { rpc }: Pick<EvmChain, "rpc">,
  args: { token: Hex; account: Hex; block: number },
): Promise<bigint> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: "balanceOf", args: [args.account] });
  const request = { to: args.token, data };
  const answer = await rpc({ method: "eth_call", params: [request, numberToHex(args.block)] }).catch(throwFault);
  // Before its contract was there nobody had any.
  return answer === "0x" ? 0n : hexToBigInt(answer);
}

/** What an account held of the native asset at a block, wei; the same fault. */
export async function readNativeBalanceAt(
  { rpc }: Pick<EvmChain, "rpc">,
  args: { account: Hex; block: number },
): Promise<bigint> {
  return hexToBigInt(
    await rpc({ method: "eth_getBalance", params: [args.account, numberToHex(args.block)] }).catch(throwFault),
  );
}
