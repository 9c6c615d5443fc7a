import { BaseError, type Hex, HttpRequestError, isHex, RpcRequestError } from "viem";
import { cleanText } from "../../runtime/clean-text.ts";
import { ChainError } from "../errors.ts";
import { isRateLimitText, readRetryAfter, readTextWait } from "../rate-limit-wait.ts";

/** Maximum length of a node's error message, in code points. */
const MAX_LENGTH = 200;

/** Returns the node's error message, cleaned, without the request, which contains signed bytes. */
export function describeRpcError(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof RpcRequestError) return cleanText(cause.details, MAX_LENGTH);
  }
  if (!(error instanceof Error)) return "unknown error";
  return cleanText(error instanceof BaseError ? error.shortMessage : error.name, MAX_LENGTH);
}

/**
 * Returns the revert data of an error, or undefined if it is not a revert. Reverts have JSON-RPC code 3 or carry data.
 */
export function findRevertData(error: unknown): Hex | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (!(cause instanceof RpcRequestError)) continue;
    const { data }: { data?: unknown } = cause;
    const inner = typeof data === "object" && data !== null && "data" in data ? data.data : data;
    if (isHex(inner)) return inner;
    if (cause.code === 3) return "0x";
  }
  return undefined;
}

/**
 * Returns true if a node refused a call because the sender cannot pay for the gas, which does not show whether the call
 * would succeed. Nodes have no error code for it, so the message is matched. A contract cannot produce this message: its
 * errors come as reverts.
 */
export function isUnfunded(error: unknown): boolean {
  return /insufficient funds|gas required exceeds allowance|outoffunds|lack of funds/i.test(describeRpcError(error));
}

/**
 * Returns true if a simulation ran out of gas. That is the outcome of the calls, not an error of the endpoint. Nodes have
 * no error code for it, so the messages of Geth, Nethermind, Erigon, Reth and Anvil are matched.
 */
export function isOutOfGas(error: unknown): boolean {
  return error instanceof ChainError && error.code === "rpc_answer" && /out ?of ?gas/i.test(error.message);
}

/**
 * Returns true if a provider refused a call because of its rate limit. A revert is not a refusal: its text comes from a
 * contract, which must not be able to suspend an endpoint.
 */
export function isRateLimit(error: unknown): boolean {
  if (findRevertData(error) !== undefined) return false;
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof RpcRequestError)
      return cause.code === 429 || (isRateLimitText(cause.details) && !/revert/i.test(cause.details));
  return false;
}

/**
 * Returns how long an endpoint must not be asked after an error, milliseconds. Returns undefined if the error is no rate
 * limit. The header Retry-After states it in seconds or as a date, and some texts do ("retry in 10s").
 */
export function readWaitMs(error: unknown, now: Date = new Date()): number | undefined {
  if (isRateLimit(error)) return readTextWait(describeRpcError(error));
  if (!(error instanceof HttpRequestError) || error.status !== 429) return undefined;
  return readRetryAfter(error.headers?.get("retry-after"), now);
}

/** The codes of errors inside of a node, and of methods that it lacks or that are not part of a plan (EIP-1474). */
const ENDPOINT_ERRORS: readonly number[] = [-32_603, -32_601, -32_004];

/**
 * Returns true if an error is about the endpoint and not about the call, so that another one may answer. A revert is not: some nodes
 * report it with the code of an internal error.
 */
export function isEndpointError(error: unknown): boolean {
  if (findRevertData(error) !== undefined) return false;
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof RpcRequestError) return ENDPOINT_ERRORS.includes(cause.code) && !/revert/i.test(cause.details);
  return false;
}

/** Throws the error of an RPC request that viem has thrown as ChainError `rpc_answer`. Throws any other one unchanged. */
export function throwChainError(cause: unknown): never {
  throw !(cause instanceof BaseError)
    ? cause
    : new ChainError("rpc_answer", { cause, detail: describeRpcError(cause) });
}
