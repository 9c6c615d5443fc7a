import { setTimeout as delay } from "node:timers/promises";
import type { Metrics } from "../runtime/metrics.ts";
import { inSpan, type SpanDescription } from "../runtime/tracing/spans.ts";
import { openCallBudget } from "./call-budget.ts";
import { readCallPriority } from "./call-priority.ts";
import { openTally } from "./endpoint-status.ts";
import { ChainError, type ChainErrorCode } from "./errors.ts";

/** How long a failed endpoint is suspended, in milliseconds. A suspended endpoint is tried last. */
const SUSPEND_MS = 5_000;
/** How long an endpoint that did not answer its last request has for an answer that the caller can do without, in milliseconds. */
const BRIEF_MS = 1_000;
const LATE = Symbol("late");

/** A request to one endpoint through its client. */
export type Query<Client, T> = (client: Client) => Promise<T>;

export type FailoverEndpoint<Client> = {
  name: string;
  isSuspended(): boolean;
  /** Returns true while the endpoint has asked us to wait (`waitMs` of its last error). It is not asked meanwhile. */
  isWaiting(): boolean;
  /** Returns how long calls of the running work (one when unset) have to wait for the endpoint's budget, milliseconds. */
  budgetWaitMs(calls?: number): number;
  /**
   * Sends a request to this endpoint. The first request checks that the endpoint serves the chain (`wrong_chain`). While the
   * endpoint's budget is spent, the request waits; one for convenience throws ChainError `budget_spent` instead. Providers
   * count the calls of a request, of which `calls` says how many it has (one when unset).
   */
  request<T>(method: string, query: Query<Client, T>, calls?: number): Promise<T>;
  /** Like `request`, but suspends the endpoint after an error that leads to the next endpoint. */
  requestOrSuspend<T>(method: string, query: Query<Client, T>, calls?: number): Promise<T>;
  /**
   * Like `requestOrSuspend`, for an answer that the caller can do without: an endpoint that did not answer its last request has only a
   * second for this one, so that one that hangs delays little. An answer that comes later ends that.
   */
  requestOptional<T>(method: string, query: Query<Client, T>): Promise<T>;
};

type Entry = { name: string; url: string; callsPerMinute?: number | undefined };

export type EndpointOptions<Client> = {
  network: { chain: string; name: string; rpc: readonly Entry[] };
  metrics: Metrics;
  connect: (url: string) => Client;
  /** Asks an endpoint for its chain: the CAIP-2 id, and a description for the error message. */
  identify: { method: string; query: Query<Client, { chain: string; description: string }> };
  /** Converts the error of a request to the error that the caller gets. */
  toError: (error: unknown, detail: string) => unknown;
  /** Returns true if the next endpoint is tried after an error, as `toError` returned it. */
  isFailover: (error: unknown) => boolean;
};

/** Returns true for a ChainError of this code. */
export const hasCode = (error: unknown, code: ChainErrorCode) => error instanceof ChainError && error.code === code;
/** Returns true for an error that an endpoint returned in its answer. */
export const isAnswer = (error: unknown) => !(error instanceof ChainError) || error.code === "rpc_answer";

/** Opens one endpoint without sending a request. `identify` checks that it serves the chain, `tally` counts its answers. */
export function openEndpoint<Client>(
  { name, url, callsPerMinute }: Entry,
  options: EndpointOptions<Client>,
): { endpoint: FailoverEndpoint<Client>; identify: () => Promise<void>; tally: ReturnType<typeof openTally> } {
  const { network, metrics, isFailover } = options;
  const client = options.connect(url);
  const budget = callsPerMinute === undefined ? undefined : openCallBudget(callsPerMinute);
  if (budget) metrics.rpcBudget.sample({ chain: network.chain, endpoint: name }, () => Math.floor(budget.remaining()));
  const tally = openTally();
  let suspendedUntil = 0;
  let waitingUntil = 0;
  let isFailing = false;
  let isRightChain = false;
  let identifying: Promise<void> | undefined;

  const spend = async (calls: number): Promise<void> => {
    const priority = readCallPriority();
    const waitMs = budget?.waitMs(priority, calls) ?? 0;
    if (waitMs > 0) metrics.rpcBudgetShortages.inc({ chain: network.chain, endpoint: name, priority });
    if (waitMs > 0 && priority === "convenience")
      throw new ChainError("budget_spent", { detail: `${name} of ${network.chain}`, waitMs });
    await budget?.take(priority, calls);
  };
  /** Sends a request. An answer that `findFailure` refuses counts as a failure, and is returned. */
  const send = async <T>(
    method: string,
    query: Query<Client, T>,
    { calls = 1, findFailure }: { calls?: number; findFailure?: (answer: T) => ChainErrorCode | undefined } = {},
  ): Promise<T> => {
    await spend(calls);
    const stop = metrics.rpcSeconds.startTimer({ chain: network.chain, endpoint: name, method });
    let outcome = "ok";
    try {
      const answer = await inSpan(
        () => describeCall(network.chain, name, method),
        () => query(client),
      );
      isFailing = false;
      const failure = findFailure?.(answer);
      if (failure) tally.failed(failure);
      else tally.answered();
      return answer;
    } catch (cause) {
      const error = options.toError(cause, `${name} of ${network.chain}, ${method}`);
      const isUnreachable = error instanceof ChainError && error.code === "rpc_unreachable";
      isFailing = isUnreachable;
      if (isUnreachable) tally.failed(error.code);
      else tally.answered();
      outcome = isUnreachable ? "unreachable" : "error";
      throw error;
    } finally {
      stop();
      metrics.rpcCalls.inc({ chain: network.chain, endpoint: name, method, outcome }, calls);
    }
  };
  // An endpoint of another chain would return wrong data and take transactions of this chain.
  const identify = async (): Promise<void> => {
    const { method, query } = options.identify;
    const { chain, description } = await send(method, query, {
      findFailure: (answer) => (answer.chain === network.chain ? undefined : "wrong_chain"),
    });
    if (chain !== network.chain)
      throw new ChainError("wrong_chain", { detail: `endpoint ${name} of ${network.name} serves ${description}` });
    isRightChain = true;
  };
  const request = async <T>(method: string, query: Query<Client, T>, calls = 1): Promise<T> => {
    // Concurrent first requests share one check.
    if (!isRightChain) {
      identifying ??= identify().finally(() => {
        identifying = undefined;
      });
      await identifying;
    }
    return send(method, query, { calls });
  };
  const suspend = (waitMs?: number): void => {
    const now = performance.now();
    waitingUntil = Math.max(waitingUntil, now + (waitMs ?? 0));
    suspendedUntil = Math.max(suspendedUntil, now + (waitMs ?? SUSPEND_MS));
  };
  const requestOrSuspend: FailoverEndpoint<Client>["requestOrSuspend"] = (method, query, calls) =>
    request(method, query, calls).catch((error: unknown) => {
      // A budget that is spent for convenience has room for money. An endpoint that returns an error may answer other calls.
      if (error instanceof ChainError && isFailover(error) && !hasCode(error, "budget_spent") && !isAnswer(error))
        suspend(error.waitMs);
      throw error;
    });
  const endpoint: FailoverEndpoint<Client> = {
    name,
    isSuspended: () => suspendedUntil > performance.now(),
    isWaiting: () => waitingUntil > performance.now(),
    budgetWaitMs: (calls) => budget?.waitMs(readCallPriority(), calls) ?? 0,
    request,
    requestOrSuspend,
    async requestOptional(method, query) {
      const answer = requestOrSuspend(method, query);
      if (!isFailing) return answer;
      const first = await Promise.race([answer, delay<typeof LATE>(BRIEF_MS, LATE, { ref: false })]);
      if (first !== LATE) return first;
      suspend();
      throw new ChainError("rpc_unreachable", { detail: `${name} of ${network.chain}, ${method}` });
    },
  };
  return { endpoint, identify, tally };
}

/** Returns the span of a call. The endpoint has its name of the networks file, because its URL can hold a key. */
function describeCall(chain: string, endpoint: string, method: string): SpanDescription {
  const attributes = {
    "rpc.system.name": "jsonrpc",
    "rpc.method": method,
    "pay.chain": chain,
    "pay.endpoint": endpoint,
  };
  return { name: method, kind: "client", attributes };
}
