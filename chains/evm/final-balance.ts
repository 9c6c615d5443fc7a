import { encodeFunctionData, type Hex, hexToBigInt, numberToHex } from "viem";
import type { FinalBalance } from "../chain-driver.ts";
import { tokenAbi } from "./abi.ts";
import { readBalancesAt } from "./balances-at-block.ts";
import { readFinalHeight } from "./blocks.ts";
import { disburserAbi } from "./disburser-contract.ts";
import { payoutKind } from "./evm-payouts.ts";
import { type EvmChain, getEvmToken } from "./open-evm-chain.ts";
import { throwChainError } from "./rpc-errors.ts";

/**
 * Reads the treasury's balance of a token at the newest final block, and whether the payout of a nonce is made at that block.
 * Throws ChainError.
 */
export async function readFinalBalance(
  chain: EvmChain,
  { asset, nonce }: { asset: string; nonce: Hex | undefined },
): Promise<FinalBalance> {
  const block = await readFinalHeight(chain, chain.rpc);
  const isMade = nonce !== undefined && (await isNonceUsed(chain, { asset, nonce, block }));
  const { balances } = await readBalancesAt(chain, [{ asset }], block);
  return { height: block, balance: balances[0] ?? 0n, isMade };
}

async function isNonceUsed(
  chain: EvmChain,
  { asset, nonce, block }: { asset: string; nonce: Hex; block: number },
): Promise<boolean> {
  const token = getEvmToken(chain, asset);
  const args = [chain.treasury, nonce] as const;
  const call =
    payoutKind(token) === "eip3009"
      ? { to: token.token, data: encodeFunctionData({ abi: tokenAbi, functionName: "authorizationState", args }) }
      : { to: chain.disburser, data: encodeFunctionData({ abi: disburserAbi, functionName: "used", args: [nonce] }) };
  const answer = await chain.rpc({ method: "eth_call", params: [call, numberToHex(block)] }).catch(throwChainError);
  // The contract did not exist at that block.
  return answer !== "0x" && hexToBigInt(answer) !== 0n;
}
