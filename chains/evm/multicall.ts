import {
  decodeErrorResult,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  numberToHex,
  parseAbi,
  RpcRequestError,
} from "viem";
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
  at: { multicall: Hex; from?: Hex; gas?: bigint },
  calls: readonly Call[],
): Promise<CallOutcome[]> {
  if (calls.length === 0) return [];
  const request = {
    to: at.multicall,
    data: encodeMulticall(calls),
    ...(at.from ? { from: at.from } : {}),
    ...(at.gas === undefined ? {} : { gas: numberToHex(at.gas) }),
  };
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

/** Gas that Multicall3 itself takes around a single call. */
const AROUND_ONE = 60_000;

/**
 * The same for calls that must not be judged by each other: one that fails among others, or a call that fails as a
 * whole, is asked again by itself, with the gas it may really take. A payer whose wallet is code could otherwise burn
 * what the others need.
 */
export async function simulateEach(
  rpc: Rpc,
  at: { multicall: Hex; from?: Hex },
  calls: readonly (Call & { gas: number })[],
): Promise<CallOutcome[]> {
  const alone = async (call: Call & { gas: number }): Promise<CallOutcome> => {
    const [outcome] = await simulateCalls(rpc, { ...at, gas: BigInt(call.gas + AROUND_ONE) }, [call]);
    return outcome ?? { ok: false, reason: "the simulation gave no answer" };
  };
  const aloneOrFault = (call: Call & { gas: number }) =>
    alone(call).catch((error: unknown): CallOutcome => {
      if (error instanceof ChainFault && error.code === "rpc_answer") return { ok: false, reason: error.message };
      throw error;
    });
  if (calls.length <= 1) return Promise.all(calls.map(alone));
  const together = await simulateCalls(rpc, at, calls).catch((error: unknown) => {
    if (error instanceof ChainFault && error.code === "rpc_answer") return undefined;
    throw error;
  });
  const outcomes: CallOutcome[] = [];
  for (const [index, call] of calls.entries()) {
    const outcome = together?.[index];
    outcomes.push(outcome?.ok ? outcome : await aloneOrFault(call));
  }
  return outcomes;
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
