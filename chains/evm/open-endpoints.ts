import { HttpRequestError, hexToNumber, TimeoutError } from "viem";
import type { Metrics } from "../../runtime/metrics.ts";
import type { EvmNetwork } from "../../runtime/networks/read-networks.ts";
import { maxBehind } from "../endpoint-heights.ts";
import { ChainError } from "../errors.ts";
import { openFailover, retryUnreachable } from "../failover.ts";
import type { FailoverEndpoint } from "../failover-endpoint.ts";
import { readBlock } from "./blocks.ts";
import { type EndpointRpc, type Endpoints, isUnavailable, type Rpc } from "./evm-rpc.ts";
import { openHttpTransport } from "./http-transport.ts";
import { readWaitMs } from "./rpc-errors.ts";

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
        const id = await readChainId(toRpc(send));
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

/** Returns the id of an endpoint's chain. One that answers with none counts as one that does not answer, because it may serve any chain. */
async function readChainId(rpc: Rpc): Promise<number> {
  try {
    return hexToNumber(await rpc({ method: "eth_chainId" }));
  } catch (cause) {
    if (isSilence(cause)) throw cause;
    throw new ChainError("rpc_unreachable", {
      cause,
      detail: "its chain id cannot be read",
      waitMs: readWaitMs(cause),
    });
  }
}

/** Types a function by the methods of the JSON-RPC API. */
function toRpc(send: Send): Rpc {
  return send as Rpc;
}

/** Returns true if no JSON-RPC answer came: refused, reset, timed out, or an HTTP error (such as 429 or 5xx). */
function isSilence(error: unknown): boolean {
  return error instanceof HttpRequestError || error instanceof TimeoutError;
}
