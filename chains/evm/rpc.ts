import pRetry from "p-retry";
import {
  type EIP1193RequestFn,
  type Hex,
  HttpRequestError,
  hexToNumber,
  http,
  type PublicRpcSchema,
  TimeoutError,
} from "viem";
import type { Metrics } from "../../ops/metrics.ts";
import type { EvmNetwork } from "../../ops/networks.ts";
import { countEndpoints } from "../endpoints.ts";
import { ChainFault } from "../faults.ts";

/** One JSON-RPC request to a chain (EIP-1193), whichever endpoint answers. */
export type Rpc = EIP1193RequestFn<PublicRpcSchema>;

/** How long an endpoint that did not answer is asked last, milliseconds. */
const SET_ASIDE_MS = 5_000;

/** One endpoint by itself. What it does not answer is thrown as ChainFault `rpc_unreachable`, without another try. */
export type NamedRpc = { name: string; rpc: Rpc };

type Endpoint = { name: string; request: Rpc; setAsideUntil: number; isRightChain: boolean };

/** The endpoints of a network. */
export type Endpoints = {
  /**
   * Asks them as one. An endpoint that does not answer is set aside and the next one asked; a read is tried three times,
   * a send once (the caller decides what an unknown outcome means).
   * Throws ChainFault `rpc_unreachable` when nobody answered, and `wrong_chain` when besides an endpoint serves another
   * chain; an error that an endpoint answered with is thrown as viem's.
   */
  rpc: Rpc;
  /**
   * Does a piece of reading with one endpoint from beginning to end; with the next one when that falls silent. Tells whose
   * word it is. The same faults.
   */
  readWithOne: <T>(read: (rpc: Rpc) => Promise<T>) => Promise<{ by: string; value: T }>;
  /** Each by itself, in their order. One that did not answer a moment ago is not asked. */
  endpoints: readonly NamedRpc[];
  /** Asks each for its chain. Throws ChainFault `wrong_chain`, naming the endpoint; one that is away is asked later. */
  check: () => Promise<void>;
};

/** Opens the endpoints of a network; nothing is asked of them yet. */
export function openEndpoints(network: EvmNetwork, metrics: Metrics): Endpoints {
  const endpoints: Endpoint[] = network.rpc.map(({ name, url }) => ({
    name,
    request: http(url, { retryCount: 0, timeout: network.rpcTimeoutMs })({}).request as Rpc,
    setAsideUntil: 0,
    isRightChain: false,
  }));

  metrics.chainEndpoints.set({ chain: network.chain }, countEndpoints(network));

  const askOne = async (endpoint: Endpoint, call: { method: string; params?: unknown }): Promise<unknown> => {
    const stop = metrics.rpcSeconds.startTimer({ chain: network.chain, method: call.method });
    let outcome = "ok";
    try {
      return await endpoint.request(call as never);
    } catch (error) {
      outcome = isSilence(error) ? "unreachable" : "error";
      throw error;
    } finally {
      stop();
      metrics.rpcCalls.inc({ chain: network.chain, endpoint: endpoint.name, method: call.method, outcome });
    }
  };

  /** The first question to every endpoint: one that serves another chain must never be believed, nor sent to. */
  const identify = async (endpoint: Endpoint): Promise<void> => {
    const answer = hexToNumber((await askOne(endpoint, { method: "eth_chainId" })) as Hex);
    if (`eip155:${answer}` !== network.chain)
      throw new ChainFault("wrong_chain", {
        detail: `endpoint ${endpoint.name} of ${network.name} serves chain id ${answer}`,
      });
    endpoint.isRightChain = true;
  };

  const isSetAside = ({ setAsideUntil }: Endpoint) => setAsideUntil > performance.now();
  const listInOrder = () => endpoints.toSorted((a, b) => Number(isSetAside(a)) - Number(isSetAside(b)));
  const askAll = async (call: { method: string; params?: unknown }): Promise<unknown> => {
    const inOrder = listInOrder();
    let silence: unknown;
    let stranger: ChainFault | undefined;
    for (const endpoint of inOrder) {
      try {
        if (!endpoint.isRightChain) await identify(endpoint);
        return await askOne(endpoint, call);
      } catch (error) {
        if (error instanceof ChainFault) stranger = error;
        else if (isSilence(error)) silence = error;
        else throw error;
        endpoint.setAsideUntil = performance.now() + SET_ASIDE_MS;
      }
    }
    if (stranger) throw stranger;
    throw new ChainFault("rpc_unreachable", { cause: silence, detail: `${network.chain} ${call.method}` });
  };

  const askAlone = async (endpoint: Endpoint, call: { method: string; params?: unknown }): Promise<unknown> => {
    try {
      if (!endpoint.isRightChain) await identify(endpoint);
      return await askOne(endpoint, call);
    } catch (error) {
      if (!(error instanceof ChainFault) && !isSilence(error)) throw error;
      endpoint.setAsideUntil = performance.now() + SET_ASIDE_MS;
      if (error instanceof ChainFault) throw error;
      throw new ChainFault("rpc_unreachable", { cause: error, detail: `${endpoint.name} of ${network.chain}` });
    }
  };
  const readOnce = async <T>(read: (rpc: Rpc) => Promise<T>): Promise<{ by: string; value: T }> => {
    const silences: ChainFault[] = [];
    for (const endpoint of listInOrder()) {
      try {
        return { by: endpoint.name, value: await read(((call: never) => askAlone(endpoint, call)) as Rpc) };
      } catch (error) {
        if (!isAway(error)) throw error;
        silences.push(error);
      }
    }
    throw silences.find(({ code }) => code === "wrong_chain") ?? silences[0];
  };
  const readWithOne = <T>(read: (rpc: Rpc) => Promise<T>) =>
    pRetry(() => readOnce(read), {
      ...{ retries: 2, minTimeout: 100, randomize: true },
      shouldRetry: ({ error }) => error instanceof ChainFault && error.code === "rpc_unreachable",
    });
  const named = endpoints.map((endpoint): NamedRpc => {
    const rpc = (call: { method: string; params?: unknown }) => {
      if (!isSetAside(endpoint)) return askAlone(endpoint, call);
      const detail = `${endpoint.name} of ${network.chain} did not answer a moment ago`;
      return Promise.reject(new ChainFault("rpc_unreachable", { detail }));
    };
    return { name: endpoint.name, rpc: rpc as Rpc };
  });

  const request = (call: { method: string; params?: unknown }): Promise<unknown> =>
    pRetry(() => askAll(call), {
      retries: call.method === "eth_sendRawTransaction" ? 0 : 2,
      minTimeout: 100,
      randomize: true,
      shouldRetry: ({ error }) => error instanceof ChainFault && error.transient,
    });
  const check = async (): Promise<void> => {
    const found = await Promise.allSettled(endpoints.map(identify));
    for (const one of found) if (one.status === "rejected" && one.reason instanceof ChainFault) throw one.reason;
  };
  return { rpc: request as Rpc, readWithOne, endpoints: named, check };
}

/** Returns true for an endpoint that gave no answer, or serves another chain. */
export function isAway(error: unknown): error is ChainFault {
  return error instanceof ChainFault && (error.code === "rpc_unreachable" || error.code === "wrong_chain");
}

/** True when no JSON-RPC answer came: refused, reset, timed out, or an HTTP error (429 and 5xx among them). */
export function isSilence(error: unknown): boolean {
  return error instanceof HttpRequestError || error instanceof TimeoutError;
}
