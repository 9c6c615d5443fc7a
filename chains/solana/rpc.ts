import { Connection, SolanaJSONRPCError } from "@solana/web3.js";
import pRetry from "p-retry";
import type { Metrics } from "../../ops/metrics.ts";
import type { SolanaNetwork } from "../../ops/networks.ts";
import { countEndpoints } from "../endpoints.ts";
import { ChainFault } from "../faults.ts";
import { type Call, createCall } from "./json-rpc.ts";

/** How long an endpoint that did not answer is asked last, milliseconds. */
const SET_ASIDE_MS = 5_000;
/** What a node answers that has not come to the slot that was asked for (`minContextSlot`). */
const SLOT_NOT_REACHED = -32_016;

type Endpoint = { name: string; connection: Connection; call: Call; setAsideUntil: number; isRightChain: boolean };
/** One question to one endpoint: by the library, or by a plain call where that costs too much. */
export type Question<T> = (connection: Connection, call: Call) => Promise<T>;

/** The endpoints of a cluster. Everything they say besides an answer is a ChainFault. */
export type SolanaRpc = {
  /**
   * Asks them as one: an endpoint that does not answer is set aside and the next one asked, three times over.
   * Throws ChainFault `rpc_unreachable` when nobody answered, `rpc_answer` with an endpoint's error, `wrong_chain`.
   */
  ask<T>(method: string, question: Question<T>): Promise<T>;
  /** The same, once only, for what must not be repeated without the caller's knowing. */
  askOnce<T>(method: string, question: Question<T>): Promise<T>;
  /**
   * Asks every endpoint at once, but for those that did not answer a moment ago; gives who has answered what, in their
   * order. Never throws.
   */
  askAny<T>(method: string, question: Question<T>): Promise<{ by: string; answer: T }[]>;
  /** Asks every endpoint. Throws ChainFault `rpc_unreachable` unless at least two have answered. */
  askEach<T>(method: string, question: Question<T>): Promise<T[]>;
};

/** Opens the endpoints of a cluster; nothing is asked of them yet. */
export function openEndpoints(
  network: SolanaNetwork,
  metrics: Metrics,
): { rpc: SolanaRpc; check: () => Promise<void> } {
  const endpoints: Endpoint[] = network.rpc.map(({ name, url }) => ({
    name,
    connection: openConnection(url, network.rpcTimeoutMs),
    call: createCall(url, network.rpcTimeoutMs),
    setAsideUntil: 0,
    isRightChain: false,
  }));

  metrics.chainEndpoints.set({ chain: network.chain }, countEndpoints(network));

  const askOne = async <T>(endpoint: Endpoint, method: string, question: Question<T>): Promise<T> => {
    const stop = metrics.rpcSeconds.startTimer({ chain: network.chain, method });
    let outcome = "ok";
    try {
      return await question(endpoint.connection, endpoint.call);
    } catch (cause) {
      const fault = toFault(cause, `${network.chain} ${method}`);
      outcome = fault.code === "rpc_unreachable" ? "unreachable" : "error";
      throw fault;
    } finally {
      stop();
      metrics.rpcCalls.inc({ chain: network.chain, endpoint: endpoint.name, method, outcome });
    }
  };

  /** The first question to every endpoint: one that serves another cluster must never be believed, nor sent to. */
  const identify = async (endpoint: Endpoint): Promise<void> => {
    const genesis = await askOne(endpoint, "getGenesisHash", (connection) => connection.getGenesisHash());
    if (`solana:${genesis.slice(0, 32)}` !== network.chain)
      throw new ChainFault("wrong_chain", {
        detail: `endpoint ${endpoint.name} of ${network.name} serves genesis ${genesis}`,
      });
    endpoint.isRightChain = true;
  };

  const askKnown = async <T>(endpoint: Endpoint, method: string, question: Question<T>): Promise<T> => {
    if (!endpoint.isRightChain) await identify(endpoint);
    return askOne(endpoint, method, question);
  };

  const askAll = async <T>(method: string, question: Question<T>): Promise<T> => {
    const inOrder = endpoints.toSorted(
      (a, b) => Number(a.setAsideUntil > performance.now()) - Number(b.setAsideUntil > performance.now()),
    );
    let silence: unknown;
    let stranger: ChainFault | undefined;
    for (const endpoint of inOrder) {
      try {
        return await askKnown(endpoint, method, question);
      } catch (error) {
        if (!(error instanceof ChainFault) || error.code === "rpc_answer") throw error;
        if (error.code === "wrong_chain") stranger = error;
        else silence = error;
        endpoint.setAsideUntil = performance.now() + SET_ASIDE_MS;
      }
    }
    if (stranger) throw stranger;
    throw new ChainFault("rpc_unreachable", { cause: silence, detail: `${network.chain} ${method}` });
  };

  const shouldRetry = ({ error }: { error: Error }) => error instanceof ChainFault && error.code === "rpc_unreachable";
  const rpc: SolanaRpc = {
    ask: (method, question) =>
      pRetry(() => askAll(method, question), { retries: 2, minTimeout: 100, randomize: true, shouldRetry }),
    askOnce: askAll,
    askAny: async (method, question) => {
      const asked = endpoints.filter(({ setAsideUntil }) => setAsideUntil <= performance.now());
      const ends = await Promise.allSettled(asked.map((endpoint) => askKnown(endpoint, method, question)));
      return ends.flatMap((end, index) => {
        const endpoint = asked[index];
        if (!endpoint) return [];
        if (end.status === "fulfilled") return [{ by: endpoint.name, answer: end.value }];
        if (end.reason instanceof ChainFault && end.reason.code === "rpc_unreachable")
          endpoint.setAsideUntil = performance.now() + SET_ASIDE_MS;
        return [];
      });
    },
    askEach: async (method, question) => {
      const ends = await Promise.allSettled(endpoints.map((endpoint) => askKnown(endpoint, method, question)));
      const answers = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
      if (answers.length >= 2) return answers;
      const cause = ends.find((end) => end.status === "rejected")?.reason;
      throw new ChainFault("rpc_unreachable", { cause, detail: `${network.chain} ${method}, from two endpoints` });
    },
  };
  const check = async (): Promise<void> => {
    const found = await Promise.allSettled(endpoints.map(identify));
    for (const { reason } of found.filter((one) => one.status === "rejected"))
      if (reason instanceof ChainFault && reason.code === "wrong_chain") throw reason;
  };
  return { rpc, check };
}

/** The library's own retries are off: only we know what may be asked again, and whom. */
function openConnection(url: string, timeoutMs: number): Connection {
  return new Connection(url, {
    commitment: "confirmed",
    disableRetryOnRateLimit: true,
    // The library's types speak of another fetch than Node's.
    fetch: ((input: string, init: RequestInit) => fetchInTime(input, init, timeoutMs)) as never,
  });
}

async function fetchInTime(input: string, init: RequestInit, timeoutMs: number): Promise<Response> {
  try {
    const response = await fetch(input, { ...init, signal: AbortSignal.timeout(timeoutMs) });
    // An error in JSON-RPC's own form comes with 200; anything else is as good as no answer.
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return new Response(await response.text(), { status: 200, headers: { "content-type": "application/json" } });
  } catch (cause) {
    throw new ChainFault("rpc_unreachable", { cause });
  }
}

function toFault(cause: unknown, detail: string): ChainFault {
  if (cause instanceof ChainFault && cause.code === "rpc_answer") return cause;
  if (cause instanceof ChainFault) return new ChainFault(cause.code, { cause: cause.cause, detail });
  // A node that lags says nothing: another one is asked.
  if (cause instanceof SolanaJSONRPCError && cause.code === SLOT_NOT_REACHED)
    return new ChainFault("rpc_behind", { cause, detail });
  const said = cause instanceof SolanaJSONRPCError ? `${detail}: ${cause.code}` : detail;
  return new ChainFault("rpc_answer", { cause, detail: said });
}
