import { decodeErrorResult, decodeFunctionResult, encodeFunctionData, type Hex, parseAbi, RpcRequestError } from "viem";
import { ChainFault } from "../faults.ts";
import { multicallAbi } from "./abi.ts";
import type { Rpc } from "./rpc.ts";

export type Call = { target: Hex; data: Hex };
/** What one call of several came to; `reason` is the contract's own words, shortened. */
export type CallOutcome = { ok: true; data: Hex } | { ok: false; reason: string };

const errorAbi = parseAbi(["error Error(string message)", "error Panic(uint256 code)"]);

/** Call data that makes all calls in one transaction, each allowed to fail by itself. */
export function encodeMulticall(calls: readonly Call[]): Hex {
  return encodeFunctionData({
    abi: multicallAbi,
    functionName: "aggregate3",
    args: [calls.map(({ target, data }) => ({ target, allowFailure: true, callData: data }))],
  });
}

/**
 * Makes all calls at the newest block in one eth_call. Order of the answer is the order of the calls.
 * Throws ChainFault `rpc_answer` when the whole call was refused.
 */
export async function simulateCalls(
  rpc: Rpc,
  at: { multicall: Hex; from?: Hex },
  calls: readonly Call[],
): Promise<CallOutcome[]> {
  if (calls.length === 0) return [];
  const request = { to: at.multicall, data: encodeMulticall(calls), ...(at.from ? { from: at.from } : {}) };
  const answer = await rpc({ method: "eth_call", params: [request, "latest"] }).catch((cause: unknown) => {
    throw cause instanceof ChainFault
      ? cause
      : new ChainFault("rpc_answer", { cause, detail: describeRpcError(cause) });
  });
  // An address without code answers "0x" to anything.
  if (answer === "0x") throw new ChainFault("wrong_contract", { detail: "the multicall address holds no code" });
  const results = decodeFunctionResult({ abi: multicallAbi, functionName: "aggregate3", data: answer });
  return results.map(({ success, returnData }) =>
    success ? { ok: true, data: returnData } : { ok: false, reason: readRevert(returnData) },
  );
}

/** The reason a contract gave for reverting. */
function readRevert(data: Hex): string {
  try {
    const { errorName, args } = decodeErrorResult({ abi: errorAbi, data });
    return errorName === "Error" ? String(args[0]).slice(0, 200) : `panic ${args[0]}`;
  } catch {
    return data === "0x" ? "reverted without a reason" : `reverted with ${data.slice(0, 10)}`;
  }
}

/** The node's own words, without the request (which holds signed bytes). */
export function describeRpcError(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause as Error) {
    if (cause instanceof RpcRequestError) return cause.details.slice(0, 200);
  }
  return error instanceof Error ? ((error as { shortMessage?: string }).shortMessage ?? error.name) : "unknown error";
}
