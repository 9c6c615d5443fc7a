import { type EIP1193RequestFn, HttpRequestError, hexToNumber, type PublicRpcSchema, TimeoutError } from "viem";
import type { Metrics } from "../../runtime/metrics.ts";
import type { EvmNetwork } from "../../runtime/networks/read-networks.ts";
import { maxBehind } from "../endpoint-heights.ts";
import type { EndpointStatus } from "../endpoint-status.ts";
import { ChainError, type ChainErrorCode } from "../errors.ts";
import { openFailover, retryUnreachable } from "../failover.ts";
import type { FailoverEndpoint } from "../failover-endpoint.ts";
import { readBlock } from "./blocks.ts";
import { openHttpTransport } from "./http-transport.ts";
import { isEndpointError, readWaitMs } from "./rpc-errors.ts";

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

type Send = (call: { method: string; params?: unknown }) => Promise<unknown>;

/** Opens the endpoints of a network without sending a request. */
export function openEndpoints(network: EvmNetwork, metrics: Metrics): Endpoints {
  const failover = openFailover<Send>({
    network,
    metrics,
    connect: (url) => openHttpTransport(url, network.rpcTimeoutMs),
    identify: {
      method: "eth_chainId",
      query: async (send) => {
        const id = hexToNumber(await toRpc(send)({ method: "eth_chainId" }));
        return { chain: `eip155:${id}`, description: `chain id ${id}` };
      },
    },
    height: {
      method: "eth_getBlockByNumber",
      // The block itself, because an endpoint may report a height whose block it does not have.
      query: async (send) => (await readBlock(toRpc(send), "latest")).number,
      maxBehind: maxBehind(network.blockMs),
    },
    toError: (cause, detail) => {
      const waitMs = readWaitMs(cause);
      if (waitMs === undefined && !isSilence(cause)) return cause;
      return new ChainError("rpc_unreachable", { cause, detail, waitMs });
    },
    isFailover: isUnavailable,
  });
  const sendTo =
    (endpoint: FailoverEndpoint<Send>): Send =>
    (call) =>
      endpoint.requestOrSuspend(call.method, (send) => send(call));
  // One function per endpoint, because what an endpoint allows is kept by it (log-ranges.ts).
  const rpcs = new Map(failover.endpoints.map((endpoint) => [endpoint.name, toRpc(sendTo(endpoint))]));
  const runOnce: Endpoints["sendToOneEndpoint"] = (work) =>
    failover.run(
      async (endpoint) => ({
        by: endpoint.name,
        value: await work(rpcs.get(endpoint.name) ?? toRpc(sendTo(endpoint))),
      }),
      network.chain,
    );

  const toEndpointRpc = (endpoint: FailoverEndpoint<Send>): EndpointRpc => ({
    name: endpoint.name,
    rpc: toRpc(async (call) => {
      if (!endpoint.isSuspended()) return sendTo(endpoint)(call);
      throw new ChainError("rpc_unreachable", { detail: `${endpoint.name} of ${network.chain} is suspended` });
    }),
  });

  return {
    rpc: toRpc((call) =>
      retryUnreachable(() => failover.run((endpoint) => sendTo(endpoint)(call), `${network.chain} ${call.method}`)),
    ),
    readFromOneEndpoint: (read) => retryUnreachable(() => runOnce(read)),
    sendToOneEndpoint: runOnce,
    endpoints: failover.endpoints.map(toEndpointRpc),
    listInOrder: () => failover.listInOrder().map(toEndpointRpc),
    check: failover.check,
    compareHeights: failover.compareHeights,
    listStatuses: failover.listStatuses,
  };
}

/** Types a function by the methods of the JSON-RPC API. */
function toRpc(send: Send): Rpc {
  return send as Rpc;
}

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

/** Returns true if no JSON-RPC answer came: refused, reset, timed out, or an HTTP error (such as 429 or 5xx). */
function isSilence(error: unknown): boolean {
  return error instanceof HttpRequestError || error instanceof TimeoutError;
}
