import { encodeFunctionData, type Hex, hexToBigInt, numberToHex } from "viem";
import type { FinalBalance } from "../chain-driver.ts";
import { maxBehind } from "../endpoint-heights.ts";
import { ChainError, isTransientChainError, parseAnswer } from "../errors.ts";
import { tokenAbi } from "./abi.ts";
import { readTokenBalance } from "./balances-at-block.ts";
import { readFinalHeight } from "./blocks.ts";
import { disburserAbi } from "./disburser-contract.ts";
import { payoutKind } from "./evm-payouts.ts";
import type { EndpointRpc, Rpc } from "./evm-rpc.ts";
import { type EvmChain, getEvmToken } from "./open-evm-chain.ts";
import { throwStateError } from "./state-errors.ts";

/**
 * Reads the treasury's balance of a token at the newest final block, and whether the payout of a nonce is made at that block,
 * from one endpoint that has its state. Endpoints with an older final block than others are asked last. Throws ChainError,
 * `state_missing` if no endpoint has it.
 */
export async function readFinalBalance(
  chain: EvmChain,
  { asset, nonce }: { asset: string; nonce: Hex | undefined },
): Promise<FinalBalance> {
  const read = async (rpc: Rpc) => {
    const block = await readFinalHeight(chain, rpc);
    const isMade = nonce !== undefined && (await isNonceUsed(chain, rpc, { asset, nonce, block }));
    return { height: block, balance: await readTokenBalance(rpc, { asset, account: chain.treasury, block }), isMade };
  };
  for (const { rpc } of await listAhead(chain)) {
    const found = await read(rpc).catch((error: unknown) => {
      if (!isTransientChainError(error)) throw error;
    });
    if (found) return found;
  }
  return (await chain.readFromOneEndpoint(read)).value;
}

/**
 * Returns the endpoints that are up to date when another one is not: it reports no final block, or one that is as far behind the
 * newest one as the head of an endpoint that lags.
 */
async function listAhead(chain: EvmChain): Promise<readonly EndpointRpc[]> {
  const { endpoints, network } = chain;
  if (endpoints.length < 2) return [];
  const heights = await Promise.all(
    endpoints.map(({ rpc }) =>
      readFinalHeight(chain, rpc).catch((error: unknown) => {
        if (error instanceof ChainError) return Number.NEGATIVE_INFINITY;
        throw error;
      }),
    ),
  );
  const lowest = Math.max(...heights) - maxBehind(network.blockMs);
  const ahead = endpoints.filter((_, index) => (heights[index] ?? 0) >= lowest);
  return ahead.length < endpoints.length ? ahead : [];
}

async function isNonceUsed(
  chain: EvmChain,
  rpc: Rpc,
  { asset, nonce, block }: { asset: string; nonce: Hex; block: number },
): Promise<boolean> {
  const token = getEvmToken(chain, asset);
  const args = [chain.treasury, nonce] as const;
  const call =
    payoutKind(token) === "eip3009"
      ? { to: token.token, data: encodeFunctionData({ abi: tokenAbi, functionName: "authorizationState", args }) }
      : { to: chain.disburser, data: encodeFunctionData({ abi: disburserAbi, functionName: "used", args: [nonce] }) };
  const answer = await rpc({ method: "eth_call", params: [call, numberToHex(block)] }).catch(throwStateError);
  // The contract did not exist at that block.
  return answer !== "0x" && parseAnswer(() => hexToBigInt(answer)) !== 0n;
}
