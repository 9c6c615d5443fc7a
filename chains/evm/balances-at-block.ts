import { encodeFunctionData, getAddress, type Hex, hexToBigInt, numberToHex } from "viem";
import { parseAssetId } from "../caip.ts";
import type { HeldBalances, Holding } from "../chain-driver.ts";
import { parseAnswer } from "../errors.ts";
import { tokenAbi } from "./abi.ts";
import type { Rpc } from "./evm-rpc.ts";
import type { EvmChain } from "./open-evm-chain.ts";
import { throwStateError } from "./state-errors.ts";

/**
 * Reads our balances at a block from one endpoint that has its state, tokens in minor units and lanes in wei. Throws ChainError,
 * `state_missing` if no endpoint has that state.
 */
export async function readBalancesAt(
  chain: Pick<EvmChain, "readFromOneEndpoint" | "treasury">,
  holdings: readonly Holding[],
  block: number,
): Promise<HeldBalances> {
  const read = (rpc: Rpc) =>
    Promise.all(
      holdings.map((holding) => {
        if ("lane" in holding) return readNativeBalance(rpc, { account: getAddress(holding.lane), block });
        return readTokenBalance(rpc, { asset: holding.asset, account: chain.treasury, block });
      }),
    );
  return { height: block, balances: (await chain.readFromOneEndpoint(read)).value };
}

/** Returns an account's balance of a token at a block, minor units. Throws ChainError `state_missing` if the endpoint lacks the state. */
export async function readTokenBalance(
  rpc: Rpc,
  { asset, account, block }: { asset: string; account: Hex; block: number },
): Promise<bigint> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: "balanceOf", args: [account] });
  const request = { to: getAddress(parseAssetId(asset)?.token ?? ""), data };
  const answer = await rpc({ method: "eth_call", params: [request, numberToHex(block)] }).catch(throwStateError);
  // The token contract did not exist at that block.
  return answer === "0x" ? 0n : parseAnswer(() => hexToBigInt(answer));
}

async function readNativeBalance(rpc: Rpc, { account, block }: { account: Hex; block: number }): Promise<bigint> {
  const params = [account, numberToHex(block)] as const;
  const answer = await rpc({ method: "eth_getBalance", params: [...params] }).catch(throwStateError);
  return parseAnswer(() => hexToBigInt(answer));
}
