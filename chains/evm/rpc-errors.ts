import { RpcRequestError } from "viem";
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
