import type { Hex } from "viem";
import type { Rpc } from "../../../chains/evm/evm-rpc.ts";
import { type Call, type CallOutcome, readRevert } from "../../../chains/evm/multicall.ts";
import { describeRpcError, findRevertData, throwChainError } from "../../../chains/evm/rpc-errors.ts";

/**
 * Calls one contract without Multicall3, which may be what is missing. A revert is an outcome. Throws ChainError if the
 * endpoint refuses the call.
 */
export async function callContract(rpc: Rpc, { target, data }: Call): Promise<CallOutcome> {
  try {
    return { ok: true, data: await rpc({ method: "eth_call", params: [{ to: target, data }, "latest"] }) };
  } catch (error) {
    const reverted = findRevertData(error);
    if (reverted !== undefined) return { ok: false, reason: readRevert(reverted) };
    // Some nodes send neither the code nor the data of a revert.
    if (/revert/i.test(describeRpcError(error))) return { ok: false, reason: readRevert("0x") };
    return throwChainError(error);
  }
}

/** Returns the code at an address, `0x` without any. Throws ChainError. */
export async function readCode(rpc: Rpc, address: Hex): Promise<string> {
  const code = await rpc({ method: "eth_getCode", params: [address, "latest"] }).catch(throwChainError);
  return code.toLowerCase();
}
