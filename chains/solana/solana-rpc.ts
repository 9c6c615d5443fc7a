import { Connection, SolanaJSONRPCError } from "@solana/web3.js";
import { chunk } from "../../runtime/chunk.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import type { SolanaNetwork } from "../../runtime/networks/read-networks.ts";
import { withCallPriority } from "../call-priority.ts";
import { maxBehind } from "../endpoint-heights.ts";
import type { EndpointStatus } from "../endpoint-status.ts";
import { ChainError } from "../errors.ts";
import { openFailover, retryUnreachable } from "../failover.ts";
import { type FailoverEndpoint, hasCode, type Query } from "../failover-endpoint.ts";
import { type Call, type CallOutcome, createCall, rateLimited } from "../json-rpc.ts";
import { batchPauseMs, type CallMany, createCallMany } from "../json-rpc-batch.ts";
import { isRateLimitText, readTextWait } from "../rate-limit-wait.ts";

/** The error code of a node that has not reached the requested slot (`minContextSlot`). */
const SLOT_NOT_REACHED = -32_016;
/**
 * The errors of an endpoint that say that a transaction itself is bad: its simulation, its signatures, its size or its version.
 * Another endpoint would say the same. With any other error, another endpoint may answer: a plan can lack a method or a quota, and a
 * node can have lost a part of its history or fail inside.
 */
export const TRANSACTION_ERRORS: readonly unknown[] = [-32_002, -32_003, -32_013, -32_015];

/** Calls of one request that are made again at another endpoint. */
const REPEATED = 16;

/** A request to one endpoint, which has this name: through web3.js or, where that is too slow, through plain calls. */
type Question<T> = (connection: Connection, call: Call, by: string) => Promise<T>;

/** The endpoints of a cluster. Every error is a ChainError. */
export type SolanaRpc = {
  /**
   * Sends a request to any endpoint. If an endpoint does not answer or returns an error, the next one is tried; if none answers, up
   * to three rounds. Throws ChainError `rpc_unreachable` if no endpoint answers, `rpc_answer` if none returns anything but an error,
   * or `wrong_chain`. An error that says that a transaction is bad is thrown at once.
   */
  ask<T>(method: string, question: Question<T>): Promise<T>;
  /** Like `ask`, but with one round, for requests that only the caller may repeat. */
  queryOnce<T>(method: string, question: Question<T>): Promise<T>;
  /**
   * Makes several calls with one request, in one round like `queryOnce`. Returns the outcomes in order, and none when the
   * endpoint takes no batches or refuses this one, or when no budget has room for all calls at once.
   */
  queryTogether(method: string, all: readonly (readonly unknown[])[]): Promise<Together>;
  /**
   * Makes calls at every endpoint that is not suspended, other than the one (`by`) that has answered them: with one request for several,
   * or one after the other where it takes no batches. Like `queryNext`, it takes no calls from the watcher: an endpoint that refuses one,
   * or whose budget has no room, gets no further ones, and one that has not answered earlier ones gets none of these. Never throws.
   */
  repeatElsewhere(
    method: string,
    calls: readonly { params: readonly unknown[]; by: string | undefined }[],
  ): Promise<void>;
  /**
   * Sends a request to every endpoint that is not suspended and whose name satisfies `isAsked`, and returns the answers in order. Waits
   * only briefly for one that did not answer its last request. Never throws.
   */
  queryAvailable<T>(
    method: string,
    question: Question<T>,
    isAsked?: (by: string) => boolean,
  ): Promise<{ by: string; answer: T }[]>;
  /**
   * Sends a request of little importance to one endpoint after the other whose name satisfies `isAsked`, until one answers. Never
   * waits for a budget and suspends no endpoint, so that it takes none from the watcher. Skips suspended endpoints. Returns undefined
   * if none answers. Throws ChainError `budget_spent` if none answers and the budget of one is spent.
   */
  queryNext<T>(
    method: string,
    question: Question<T>,
    isAsked: (by: string) => boolean,
  ): Promise<{ by: string; answer: T } | undefined>;
  /** Sends a request to every endpoint. Throws ChainError `rpc_unreachable` unless at least two answer. */
  queryAll<T>(method: string, question: Question<T>): Promise<T[]>;
};

/** The outcomes of calls that were made with one request, and the endpoint that answered it. */
export type Together = { by: string; outcomes: CallOutcome[] };

type Client = { connection: Connection; call: Call; callMany: CallMany };

/** Opens the endpoints of a cluster without sending a request. */
export function openEndpoints(
  network: SolanaNetwork,
  metrics: Metrics,
): { rpc: SolanaRpc; check: () => Promise<void>; listStatuses: () => EndpointStatus[] } {
  const failover = openFailover<Client>({
    network,
    metrics,
    connect: (url) => {
      const calls = createCall(url, network.rpcTimeoutMs);
      const connection = openConnection(url, network.rpcTimeoutMs);
      return { connection, call: calls.call, callMany: createCallMany(calls.send) };
    },
    identify: {
      method: "getGenesisHash",
      query: async ({ connection }) => {
        const genesis = await connection.getGenesisHash();
        return { chain: `solana:${genesis.slice(0, 32)}`, description: `genesis ${genesis}` };
      },
    },
    height: {
      method: "getSlot",
      // An endpoint whose confirmed slot stands still has an old final slot too, and the final one can stand still alone.
      query: ({ connection }) => connection.getSlot("finalized"),
      maxBehind: maxBehind(network.slotMs),
    },
    toError: toChainError,
    isFailover: (error) =>
      error instanceof ChainError && !(error.code === "rpc_answer" && TRANSACTION_ERRORS.includes(readCode(error))),
  });
  const toQuery =
    <T>(question: Question<T>, by: string): Query<Client, T> =>
    ({ connection, call }) =>
      question(connection, call, by);
  const queryOnce = <T>(method: string, question: Question<T>): Promise<T> =>
    failover.run(
      (endpoint) => endpoint.requestOrSuspend(method, toQuery(question, endpoint.name)),
      `${network.chain} ${method}`,
    );
  /** Until when an endpoint gets single calls (performance.now). */
  const singleUntil = new Map<FailoverEndpoint<Client>, number>();
  /** Makes calls with one request. Returns no outcomes when the endpoint takes no batches or its budget has no room. Throws ChainError. */
  const askTogether = async (
    endpoint: FailoverEndpoint<Client>,
    method: string,
    all: readonly (readonly unknown[])[],
    request = endpoint.requestOrSuspend,
  ): Promise<CallOutcome[]> => {
    const takesNone = performance.now() < (singleUntil.get(endpoint) ?? 0);
    if (takesNone || endpoint.budgetWaitMs(all.length) > 0) return [];
    try {
      return await request(method, ({ callMany }) => callMany(method, all), all.length);
    } catch (error) {
      const pauseMs = batchPauseMs(error);
      if (pauseMs > 0) singleUntil.set(endpoint, performance.now() + pauseMs);
      if (error instanceof ChainError && error.code === "rpc_answer") return [];
      throw error;
    }
  };

  /** The endpoints at which calls of `repeatElsewhere` are being made. */
  const repeating = new Set<FailoverEndpoint<Client>>();

  const rpc: SolanaRpc = {
    ask: (method, question) => retryUnreachable(() => queryOnce(method, question)),
    queryOnce,
    queryTogether: (method, all) =>
      failover.run(
        async (endpoint) => ({ by: endpoint.name, outcomes: await askTogether(endpoint, method, all) }),
        `${network.chain} ${method}`,
        all.length,
      ),
    async repeatElsewhere(method, calls) {
      const others = failover.endpoints.filter((endpoint) => !endpoint.isSuspended() && !repeating.has(endpoint));
      const repeat = async (endpoint: FailoverEndpoint<Client>): Promise<void> => {
        for (const some of chunk(
          calls.filter(({ by }) => by !== endpoint.name),
          REPEATED,
        )) {
          const all = some.map(({ params }) => params);
          const outcomes = all.length > 1 ? await askTogether(endpoint, method, all, endpoint.request) : [];
          if (outcomes.length > 0) continue;
          for (const params of all)
            await endpoint
              .request(method, ({ call }) => call(method, params))
              .catch((error: unknown) => {
                if (!hasCode(error, "rpc_answer")) throw error;
              });
        }
      };
      const repeatAlone = (endpoint: FailoverEndpoint<Client>): Promise<unknown> => {
        repeating.add(endpoint);
        return repeat(endpoint).finally(() => repeating.delete(endpoint));
      };
      await withCallPriority("convenience", () => Promise.allSettled(others.map(repeatAlone)));
    },
    async queryAvailable(method, question, isAsked = () => true) {
      const available = failover.endpoints.filter((endpoint) => !endpoint.isSuspended() && isAsked(endpoint.name));
      const results = await Promise.allSettled(
        available.map(async (endpoint) => {
          const { name: by } = endpoint;
          return { by, answer: await endpoint.requestOptional(method, toQuery(question, by)) };
        }),
      );
      return results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    },
    async queryNext(method, question, isAsked) {
      const available = failover.listInOrder().filter(({ name, isSuspended }) => !isSuspended() && isAsked(name));
      let spent: unknown;
      for (const endpoint of available) {
        const ask = () => endpoint.request(method, toQuery(question, endpoint.name));
        try {
          return { by: endpoint.name, answer: await withCallPriority("convenience", ask) };
        } catch (error) {
          if (hasCode(error, "budget_spent")) spent = error;
        }
      }
      if (spent !== undefined) throw spent;
      return undefined;
    },
    async queryAll(method, question) {
      const results = await Promise.allSettled(
        failover.endpoints.map((endpoint) => endpoint.request(method, toQuery(question, endpoint.name))),
      );
      const answers = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
      if (answers.length >= 2) return answers;
      const cause = results.find((result) => result.status === "rejected")?.reason;
      throw new ChainError("rpc_unreachable", { cause, detail: `${network.chain} ${method}, from two endpoints` });
    },
  };
  return { rpc, check: failover.check, listStatuses: failover.listStatuses };
}

/** Opens a web3.js connection without its own retries: `SolanaRpc` decides which requests are repeated, and where. */
function openConnection(url: string, timeoutMs: number): Connection {
  return new Connection(url, {
    commitment: "confirmed",
    disableRetryOnRateLimit: true,
    fetch: (input, init) => fetchInTime(input, init, timeoutMs),
  });
}

async function fetchInTime(
  input: Parameters<typeof fetch>[0],
  init: Parameters<typeof fetch>[1],
  timeoutMs: number,
): Promise<Response> {
  try {
    const response = await fetch(input, { ...init, signal: AbortSignal.timeout(timeoutMs) });
    if (response.status === 429) throw rateLimited(response.headers.get("retry-after"));
    // JSON-RPC errors have status 200; any other status counts as no answer.
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return new Response(await response.text(), { status: 200, headers: { "content-type": "application/json" } });
  } catch (cause) {
    if (cause instanceof ChainError) throw cause;
    throw new ChainError("rpc_unreachable", { cause });
  }
}

function toChainError(cause: unknown, detail: string): ChainError {
  // A lagging node cannot answer, so the next endpoint is tried.
  const code = readCode(cause);
  if (isSlotNotReached(cause)) return new ChainError("rpc_behind", { cause, detail });
  // Some providers report their rate limits with the status 200.
  const text = cause instanceof Error && !TRANSACTION_ERRORS.includes(code) ? cause.message : "";
  if (code === 429 || isRateLimitText(text))
    return new ChainError("rpc_unreachable", { cause, detail, waitMs: readTextWait(text) });
  if (cause instanceof ChainError && cause.code === "rpc_answer") return cause;
  if (cause instanceof ChainError)
    return new ChainError(cause.code, { cause: cause.cause, detail, waitMs: cause.waitMs });
  const described = cause instanceof SolanaJSONRPCError ? `${detail}: ${cause.code}` : detail;
  return new ChainError("rpc_answer", { cause, detail: described });
}

/** Returns true for the error of an endpoint that has not reached the requested slot, as `readCode` reads it. */
export const isSlotNotReached = (error: unknown): boolean => readCode(error) === SLOT_NOT_REACHED;

/** Returns the code of an endpoint's error, from web3.js or from a plain call. */
export function readCode(error: unknown): unknown {
  const cause = error instanceof ChainError ? error.cause : error;
  return typeof cause === "object" && cause !== null && "code" in cause ? cause.code : undefined;
}
