import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { Metrics } from "../runtime/metrics.ts";
import { catalog, type JobData, jobId, type QueueName, queueNames } from "./catalog.ts";

/** One job to enqueue: its payload, its retry number (the sweep counts up) and its delay in milliseconds. */
export type JobRequest<N extends QueueName = QueueName> = { data: JobData<N>; retry?: number; delayMs?: number };

/**
 * Adds jobs to a queue. Never throws and never waits for an unavailable Redis: the rows behind the jobs have a due time, and
 * the sweep enqueues the jobs that are missed here.
 */
export type Enqueue = <N extends QueueName>(queue: N, requests: readonly JobRequest<N>[]) => Promise<void>;

export type QueueDeps = {
  redis: Redis;
  prefix: string;
  log: Logger;
  metrics: Metrics;
  /** Returns the id of the API request that is being served, if any. */
  requestId?: () => string | undefined;
};

/** Failed jobs that each queue keeps for operators. */
const KEPT_FAILED = 1_000;

/** Opens one BullMQ queue for each entry of the catalog. Close them after the last job was enqueued. */
export function openJobQueues({ redis, prefix, log, metrics, requestId }: QueueDeps): {
  enqueue: Enqueue;
  queues: Queue[];
  close(): Promise<void>;
} {
  const queues = new Map(
    queueNames.map((name) => {
      const queue = new Queue(name, {
        connection: redis,
        prefix,
        skipVersionCheck: true,
        defaultJobOptions: {
          removeOnComplete: true,
          removeOnFail: { count: KEPT_FAILED },
          attempts: catalog[name].attempts,
          backoff: { type: "custom" },
        },
      });
      queue.on("error", (error) => log.debug({ queue: name, err: error }, "queue connection error"));
      return [name, queue] as const;
    }),
  );
  const enqueue: Enqueue = async (name, requests) => {
    if (requests.length === 0) return;
    const request = requestId?.();
    const withRequest = requests.map((one) =>
      request === undefined ? one : { ...one, data: { ...one.data, requestId: request } },
    );
    // The sweep's retries have ids of their own, so they are not merged.
    const isFirst = requests.every(({ retry, delayMs }) => retry === undefined && delayMs === undefined);
    if (catalog[name].merge && isFirst) await addMerged(name, withRequest);
    else await add(name, withRequest);
  };
  /** Jobs that are enqueued while an earlier one is added, or within one iteration of the event loop, become one job. */
  const waiting = new Map<QueueName, { requests: JobRequest[]; added: Promise<void> }>();
  const adding = new Map<QueueName, Promise<void>>();
  const addMerged = <N extends QueueName>(name: N, requests: readonly JobRequest<N>[]): Promise<void> => {
    const open = waiting.get(name);
    open?.requests.push(...requests);
    if (open) return open.added;
    const all: JobRequest<N>[] = [...requests];
    const added = (adding.get(name) ?? new Promise((resolve) => setImmediate(resolve))).then(async () => {
      waiting.delete(name);
      const now = add(name, mergeRequests(name, all));
      adding.set(name, now);
      await now;
      if (adding.get(name) === now) adding.delete(name);
    });
    // Entries of a queue's list are all of this queue.
    waiting.set(name, { requests: all as JobRequest[], added });
    return added;
  };
  const add = async <N extends QueueName>(name: N, requests: readonly JobRequest<N>[]): Promise<void> => {
    const queue = queues.get(name);
    const jobs = requests.map(({ data, retry, delayMs }) => ({
      name,
      data,
      opts: { jobId: jobId(name, data, retry ?? 0), ...(delayMs === undefined ? {} : { delay: Math.max(0, delayMs) }) },
    }));
    try {
      // BullMQ waits without limit for the first connection, so a Redis that never was available would block the caller.
      if (redis.status !== "ready") throw new Error("redis is not connected");
      const [only] = jobs;
      // addBulk needs three commands where add needs one.
      if (only && jobs.length === 1) await queue?.add(only.name, only.data, only.opts);
      else await queue?.addBulk(jobs);
    } catch (error) {
      metrics.enqueueFailures.inc({ queue: name }, requests.length);
      log.warn({ queue: name, jobs: requests.length, err: error }, "jobs not enqueued; the sweep retries");
    }
  };
  return {
    enqueue,
    queues: [...queues.values()],
    close: async () => {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}

/** Payloads that are merged into one job at most. */
const MAX_MERGED = 100;

function mergeRequests<N extends QueueName>(name: N, requests: readonly JobRequest<N>[]): JobRequest<N>[] {
  const { merge } = catalog[name];
  if (!merge || requests.length === 1) return [...requests];
  const merged: JobRequest<N>[] = [];
  for (let from = 0; from < requests.length; from += MAX_MERGED) {
    const [first, ...others] = requests.slice(from, from + MAX_MERGED).map(({ data }) => data);
    if (first) merged.push({ data: merge([first, ...others]) });
  }
  return merged;
}
