import { type Hex, isHex, RpcRequestError } from "viem";
import { cleanText } from "../../ops/clean-text.ts";
import { ChainFault } from "../faults.ts";

/** Longest text of a node that is kept, code points. */
const LONGEST = 200;

/** Returns the node's own words, cleaned, without the request (which holds signed bytes). */
export function describeRpcError(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause as Error) {
    if (cause instanceof RpcRequestError) return cleanText(cause.details, LONGEST);
  }
  if (!(error instanceof Error)) return "unknown error";
  return cleanText((error as { shortMessage?: string }).shortMessage ?? error.name, LONGEST);
}

/** What a contract reverted with, if that is what an error says (JSON-RPC code 3, or data beside the message). */
export function findRevertData(error: unknown): Hex | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause as Error) {
    if (!(cause instanceof RpcRequestError)) continue;
    const data = typeof cause.data === "object" ? (cause.data as { data?: unknown } | null)?.data : cause.data;
    if (isHex(data)) return data;
    if (cause.code === 3) return "0x";
  }
  return undefined;
}

/**
 * True when a node would not make the call because its sender cannot pay for the gas. That says nothing about the call;
 * there is no code for it either. A contract's own words never get here: they come as a revert.
 */
export function isUnfunded(error: unknown): boolean {
  return /insufficient funds|gas required exceeds allowance|outoffunds|lack of funds/i.test(describeRpcError(error));
}

/**
 * True when a simulation ended because the calls took all the gas they were given: that is their outcome, and no fault
 * of the endpoint. There is no code for it; these are the words of Geth, Nethermind, Erigon, Reth and Anvil.
 */
export function isOutOfGas(error: unknown): boolean {
  return error instanceof ChainFault && error.code === "rpc_answer" && /out ?of ?gas/i.test(error.message);
}

/** Throws what an RPC request ended with as a fault: `rpc_answer` unless it is one already. */
export function throwFault(cause: unknown): never {
  throw cause instanceof ChainFault ? cause : new ChainFault("rpc_answer", { cause, detail: describeRpcError(cause) });
}
