import { encodeFunctionData, getAddress, type Hex, hexToBigInt, numberToHex } from "viem";
import { parseAssetId } from "../caip.ts";
import type { HeldBalances, Holding } from "../chain-driver.ts";
import { tokenAbi } from "./abi.ts";
import type { EvmChain } from "./open-evm-chain.ts";
import { throwChainError } from "./rpc-errors.ts";

/**
 * Reads our balances at a block, tokens in minor units and lanes in wei. Throws ChainError `rpc_answer` if the node lacks
 * that state.
 */
export async function readBalancesAt(
  chain: Pick<EvmChain, "rpc" | "treasury">,
  holdings: readonly Holding[],
  block: number,
): Promise<HeldBalances> {
  const balances = holdings.map((holding) => {
    if ("lane" in holding) return readNativeBalance(chain, { account: getAddress(holding.lane), block });
    const token = getAddress(parseAssetId(holding.asset)?.token ?? "");
    return readTokenBalance(chain, { token, account: chain.treasury, block });
  });
  return { height: block, balances: await Promise.all(balances) };
}

async function readTokenBalance(
  { rpc }: Pick<EvmChain, "rpc">,
  args: { token: Hex; account: Hex; block: number },
): Promise<bigint> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: "balanceOf", args: [args.account] });
  const request = { to: args.token, data };
  const answer = await rpc({ method: "eth_call", params: [request, numberToHex(args.block)] }).catch(throwChainError);
  // The token contract did not exist at that block.
  return answer === "0x" ? 0n : hexToBigInt(answer);
}

async function readNativeBalance(
  { rpc }: Pick<EvmChain, "rpc">,
  args: { account: Hex; block: number },
): Promise<bigint> {
  return hexToBigInt(
    await rpc({ method: "eth_getBalance", params: [args.account, numberToHex(args.block)] }).catch(throwChainError),
  );
}
