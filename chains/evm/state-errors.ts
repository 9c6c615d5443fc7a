import { ChainError } from "../errors.ts";
import { describeRpcError, findRevertData, throwChainError } from "./rpc-errors.ts";

/**
 * Texts of nodes that no longer have the state of a block. Nodes share no code for it: Geth and its forks, Erigon, Nethermind,
 * Besu and Reth, and providers whose plan lacks older states.
 */
const MISSING = [
  /missing trie node|historical state|no state available|world ?state unavailable/i,
  /state .*(not available|unavailable|not found)|(state|data) .*prun(ed|ing)|pruned .*state/i,
  /\barchiv(e|al)\b/i,
];

/** Returns true if an endpoint has refused a read because it no longer has the state of its block. A revert is no such answer. */
export function isStateMissing(error: unknown): boolean {
  if (findRevertData(error) !== undefined) return false;
  const text = describeRpcError(error);
  return !/revert/i.test(text) && MISSING.some((pattern) => pattern.test(text));
}

/**
 * Throws the error of a read at an older block as ChainError: `state_missing` if the endpoint lacks the block's state, so that
 * `readFromOneEndpoint` asks the next one, and otherwise as `throwChainError` does.
 */
export function throwStateError(cause: unknown): never {
  if (cause instanceof ChainError || !isStateMissing(cause)) return throwChainError(cause);
  throw new ChainError("state_missing", { cause, detail: describeRpcError(cause) });
}
