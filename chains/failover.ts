import pRetry from "p-retry";
import { withCallPriority } from "./call-priority.ts";
import { countEndpoints } from "./endpoint-agreement.ts";
import { listBehind } from "./endpoint-heights.ts";
import type { EndpointStatus } from "./endpoint-status.ts";
import { ChainError, type ChainErrorCode } from "./errors.ts";
import {
  type EndpointOptions,
  type FailoverEndpoint,
  hasCode,
  isAnswer,
  openEndpoint,
  type Query,
} from "./failover-endpoint.ts";

/** How often a process compares the heights of a network's endpoints, in milliseconds. */
const COMPARE_MS = 15_000;

export type Failover<Client> = {
  /** The endpoints in the order of the networks file. */
  endpoints: readonly FailoverEndpoint<Client>[];
  /**
   * Returns the endpoints in the order in which they are asked. Suspended endpoints come last, lagging ones before them, and those
   * whose budget has room for `calls` calls (one when unset) come first.
   */
  listInOrder(calls?: number): FailoverEndpoint<Client>[];
  /**
   * Runs a piece of work, of `calls` calls (one when unset), with one endpoint, and with the next one while `isFailover` says so.
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

export type FailoverOptions<Client> = EndpointOptions<Client> & {
  /**
   * Asks an endpoint for the height of its newest block. An endpoint that is more than `maxBehind` blocks below another one
   * lags: it answers, but with an old state of the chain.
   */
  height: { method: string; query: Query<Client, number>; maxBehind: number };
};

/** Opens the endpoints of a network without sending a request. */
export function openFailover<Client>(options: FailoverOptions<Client>): Failover<Client> {
  const { network, metrics, isFailover } = options;
  metrics.chainEndpoints.set({ chain: network.chain }, countEndpoints(network));
  const opened = network.rpc.map((entry) => openEndpoint(entry, options));
  const endpoints = opened.map(({ endpoint }) => endpoint);
  const heights = openHeightComparison(endpoints, options);
  const listInOrder: Failover<Client>["listInOrder"] = (calls) =>
    endpoints.toSorted(
      (a, b) =>
        Number(a.isSuspended()) - Number(b.isSuspended()) ||
        Number(heights.isLagging(a)) - Number(heights.isLagging(b)) ||
        a.budgetWaitMs(calls) - b.budgetWaitMs(calls),
    );

  return {
    endpoints,
    listInOrder,
    async run(work, detail, calls) {
      heights.compareIfDue();
      const errors: unknown[] = [];
      for (const endpoint of listInOrder(calls)) {
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

/** Runs a read up to three times while it throws ChainError `rpc_unreachable`. */
export function retryUnreachable<T>(read: () => Promise<T>): Promise<T> {
  return pRetry(read, {
    retries: 2,
    minTimeout: 100,
    randomize: true,
    shouldRetry: ({ error }) => error instanceof ChainError && error.code === "rpc_unreachable",
  });
}
