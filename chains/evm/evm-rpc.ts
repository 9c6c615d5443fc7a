import type { EIP1193RequestFn, PublicRpcSchema } from "viem";
import type { EndpointStatus } from "../endpoint-status.ts";
import { ChainError, type ChainErrorCode } from "../errors.ts";
import { isEndpointError } from "./rpc-errors.ts";

/** Sends a JSON-RPC request to a chain (EIP-1193). */
export type Rpc = EIP1193RequestFn<PublicRpcSchema>;

/** One endpoint. It throws ChainError `rpc_unreachable` if it does not answer, without a retry. */
export type EndpointRpc = { name: string; rpc: Rpc };

/** The endpoints of a network. */
export type Endpoints = {
  /**
   * Sends a read to any endpoint. If an endpoint does not answer, the next one is tried, and all of them three times.
   * Throws ChainError `rpc_unreachable` if no endpoint answers, `wrong_chain` if moreover an endpoint serves another chain,
   * and viem's error if an endpoint returns an error.
   */
  rpc: Rpc;
  /**
   * Runs several reads with one endpoint, and all of them with the next one if that endpoint stops answering. Returns the
   * endpoint's name in `by`. Throws the same errors as `rpc`.
   */
  readFromOneEndpoint: <T>(read: (rpc: Rpc) => Promise<T>) => Promise<{ by: string; value: T }>;
  /** Like `readFromOneEndpoint`, but asks each endpoint once: a broadcast without an answer may have reached the network. */
  sendToOneEndpoint: <T>(send: (rpc: Rpc) => Promise<T>) => Promise<{ by: string; value: T }>;
  /** Each endpoint, in the order of the networks file. A suspended endpoint is not asked. */
  endpoints: readonly EndpointRpc[];
  /** Returns each endpoint, those that lag after the others. A suspended endpoint is not asked. */
  listInOrder: () => EndpointRpc[];
  /**
   * Checks the chain of every endpoint. Throws ChainError `wrong_chain`. Endpoints that do not answer are checked
   * later.
   */
  check: () => Promise<void>;
  /** Finds the endpoints that lag, which are asked last from then on. Never throws. */
  compareHeights: () => Promise<void>;
  /** Returns how each endpoint has done. Sends no request. */
  listStatuses: () => EndpointStatus[];
};

/**
 * Errors after which another endpoint is asked: no answer, no budget for the call, another chain, or logs or a state
 * that this endpoint does not have.
 */
const FAILOVER_CODES: readonly string[] = [
  "rpc_unreachable",
  "budget_spent",
  "wrong_chain",
  "logs_refused",
  "state_missing",
] satisfies ChainErrorCode[];

/** Returns true for the error of an endpoint that gave no answer, that serves another chain, or that fails whatever it is asked. */
export function isUnavailable(error: unknown): boolean {
  return (error instanceof ChainError && FAILOVER_CODES.includes(error.code)) || isEndpointError(error);
}
