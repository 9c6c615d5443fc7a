import pRetry from "p-retry";
import type { Metrics } from "../runtime/metrics.ts";
import { inSpan, type SpanDescription } from "../runtime/tracing/spans.ts";
import { openCallBudget } from "./call-budget.ts";
import { readCallPriority, withCallPriority } from "./call-priority.ts";
import { countEndpoints } from "./endpoint-agreement.ts";
import { listBehind } from "./endpoint-heights.ts";
import { type EndpointStatus, openTally } from "./endpoint-status.ts";
import { ChainError, type ChainErrorCode } from "./errors.ts";

/** How long a failed endpoint is suspended, in milliseconds. A suspended endpoint is tried last. */
const SUSPEND_MS = 5_000;
/** How often a process compares the heights of a network's endpoints, in milliseconds. */
const COMPARE_MS = 15_000;

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
};

export type Failover<Client> = {
  /** The endpoints in the order of the networks file. */
  endpoints: readonly FailoverEndpoint<Client>[];
  /**
   * Runs a piece of work with one endpoint, and with the next one while `isFailover` says so. Suspended endpoints come
   * last, lagging ones before them, and those whose budget has room for the `calls` of the work (one when unset) come first.
   * Throws ChainError `rpc_unreachable` if no endpoint answers, the error of one that returns an error, `wrong_chain` if one of them
   * serves another chain, `logs_refused` if one of them answers but shows the logs of a block in no way, `state_missing` if one of
   * them lacks the state of a block, and `budget_spent` if one of them has no budget for the call.
   */
  run<T>(work: (endpoint: FailoverEndpoint<Client>) => Promise<T>, detail: string, calls?: number): Promise<T>;
  /**
   * Asks every endpoint for its height and finds those that lag. `run` does so every 15 seconds; a caller that sees no new
   * block need not wait for that. Does nothing with a single endpoint. Never throws.
   */
  compareHeights(): Promise<void>;
  /** Returns how each endpoint has done, in the order of the networks file. Sends no request. */
  listStatuses(): EndpointStatus[];
  /** Checks the chain of every endpoint. Throws ChainError `wrong_chain`. Ignores endpoints that do not answer. */
  check(): Promise<void>;
};

type Entry = { name: string; url: string; callsPerMinute?: number | undefined };

export type FailoverOptions<Client> = {
  network: { chain: string; name: string; rpc: readonly Entry[] };
  metrics: Metrics;
  connect: (url: string) => Client;
  /** Asks an endpoint for its chain: the CAIP-2 id, and a description for the error message. */
  identify: { method: string; query: Query<Client, { chain: string; description: string }> };
  /**
   * Asks an endpoint for the height of its newest block. An endpoint that is more than `maxBehind` blocks below another one
   * lags: it answers, but with an old state of the chain.
   */
  height: { method: string; query: Query<Client, number>; maxBehind: number };
  /** Converts the error of a request to the error that the caller gets. */
  toError: (error: unknown, detail: string) => unknown;
  /** Returns true if the next endpoint is tried after an error, as `toError` returned it. */
  isFailover: (error: unknown) => boolean;
};

/** Opens the endpoints of a network without sending a request. */
export function openFailover<Client>(options: FailoverOptions<Client>): Failover<Client> {
  const { network, metrics, isFailover } = options;
  metrics.chainEndpoints.set({ chain: network.chain }, countEndpoints(network));
  const opened = network.rpc.map((entry) => openEndpoint(entry, options));
  const endpoints = opened.map(({ endpoint }) => endpoint);
  const heights = openHeightComparison(endpoints, options);

  return {
    endpoints,
    async run(work, detail, calls) {
      heights.compareIfDue();
      const inOrder = endpoints.toSorted(
        (a, b) =>
          Number(a.isSuspended()) - Number(b.isSuspended()) ||
          Number(heights.isLagging(a)) - Number(heights.isLagging(b)) ||
          a.budgetWaitMs(calls) - b.budgetWaitMs(calls),
      );
      const errors: unknown[] = [];
      for (const endpoint of inOrder) {
        try {
          if (endpoint.isWaiting())
            throw new ChainError("rpc_unreachable", {
              detail: `${endpoint.name} of ${network.chain} limits the rate of calls`,
            });
          return await work(endpoint);
        } catch (error) {
          if (!isFailover(error)) throw error;
          errors.push(error);
        }
      }
      const find = (wanted: ChainErrorCode) => errors.findLast((error) => hasCode(error, wanted));
      throw (
        find("wrong_chain") ??
        find("logs_refused") ??
        find("state_missing") ??
        find("budget_spent") ??
        errors.findLast((error) => isAnswer(error)) ??
        new ChainError("rpc_unreachable", { cause: errors.at(-1), detail })
      );
    },
    compareHeights: heights.compare,
    listStatuses: () =>
      opened.map(({ endpoint, tally }) => ({
        ...tally.read(),
        name: endpoint.name,
        height: heights.heightOf(endpoint),
      })),
    async check() {
      const results = await Promise.allSettled(opened.map(({ identify }) => identify()));
      for (const { reason } of results.filter((one) => one.status === "rejected"))
        if (reason instanceof ChainError && reason.code === "wrong_chain") throw reason;
    },
  };
}

const hasCode = (error: unknown, code: ChainErrorCode) => error instanceof ChainError && error.code === code;
/** Returns true for an error that an endpoint returned in its answer. */
const isAnswer = (error: unknown) => !(error instanceof ChainError) || error.code === "rpc_answer";

/** Keeps which endpoints lag. An endpoint that was suspended or did not answer keeps its last comparison. */
function openHeightComparison<Client>(
  endpoints: readonly FailoverEndpoint<Client>[],
  { network, metrics, height }: FailoverOptions<Client>,
) {
  const lagging = new Set<string>();
  const compared = new Map<string, number>();
  let comparedAt = performance.now();
  let comparing: Promise<void> | undefined;
  const readHeights = async (): Promise<Map<string, number>> => {
    const asked = endpoints.filter((endpoint) => !endpoint.isSuspended());
    const results = await Promise.allSettled(
      asked.map(async (endpoint): Promise<[string, number]> => {
        const read = () => endpoint.requestOrSuspend(height.method, height.query);
        return [endpoint.name, await withCallPriority("convenience", read)];
      }),
    );
    return new Map(results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])));
  };
  const compareOnce = async (): Promise<void> => {
    const heights = await readHeights();
    for (const [endpoint, read] of heights) compared.set(endpoint, read);
    for (const [endpoint, blocks] of listBehind(heights)) {
      metrics.endpointBehind.set({ chain: network.chain, endpoint }, blocks);
      if (blocks > height.maxBehind) lagging.add(endpoint);
      else lagging.delete(endpoint);
    }
    comparedAt = performance.now();
  };
  const compare = async (): Promise<void> => {
    if (endpoints.length < 2) return;
    comparing ??= compareOnce().finally(() => {
      comparing = undefined;
    });
    await comparing;
  };
  return {
    compare,
    compareIfDue: () => {
      if (performance.now() - comparedAt >= COMPARE_MS) void compare();
    },
    heightOf: ({ name }: FailoverEndpoint<Client>) => compared.get(name),
    isLagging: ({ name }: FailoverEndpoint<Client>) => lagging.has(name),
  };
}

function openEndpoint<Client>(
  { name, url, callsPerMinute }: Entry,
  options: FailoverOptions<Client>,
): { endpoint: FailoverEndpoint<Client>; identify: () => Promise<void>; tally: ReturnType<typeof openTally> } {
  const { network, metrics, isFailover } = options;
  const client = options.connect(url);
  const budget = callsPerMinute === undefined ? undefined : openCallBudget(callsPerMinute);
  if (budget) metrics.rpcBudget.sample({ chain: network.chain, endpoint: name }, () => Math.floor(budget.remaining()));
  const tally = openTally();
  let suspendedUntil = 0;
  let waitingUntil = 0;
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
      const failure = findFailure?.(answer);
      if (failure) tally.failed(failure);
      else tally.answered();
      return answer;
    } catch (cause) {
      const error = options.toError(cause, `${name} of ${network.chain}, ${method}`);
      const isUnreachable = error instanceof ChainError && error.code === "rpc_unreachable";
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
  const endpoint: FailoverEndpoint<Client> = {
    name,
    isSuspended: () => suspendedUntil > performance.now(),
    isWaiting: () => waitingUntil > performance.now(),
    budgetWaitMs: (calls) => budget?.waitMs(readCallPriority(), calls) ?? 0,
    request,
    requestOrSuspend: (method, query, calls) =>
      request(method, query, calls).catch((error: unknown) => {
        // A budget that is spent for convenience has room for money. An endpoint that returns an error may answer other calls.
        if (error instanceof ChainError && isFailover(error) && !hasCode(error, "budget_spent") && !isAnswer(error)) {
          const now = performance.now();
          waitingUntil = Math.max(waitingUntil, now + (error.waitMs ?? 0));
          suspendedUntil = Math.max(suspendedUntil, now + (error.waitMs ?? SUSPEND_MS));
        }
        throw error;
      }),
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

/** Runs a read up to three times while it throws ChainError `rpc_unreachable`. */
export function retryUnreachable<T>(read: () => Promise<T>): Promise<T> {
  return pRetry(read, {
    retries: 2,
    minTimeout: 100,
    randomize: true,
    shouldRetry: ({ error }) => error instanceof ChainError && error.code === "rpc_unreachable",
  });
}
