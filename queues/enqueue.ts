import { setTimeout as pause } from "node:timers/promises";
import { Queue } from "bullmq";
import type { Logger } from "pino";
import type { WaitForOthers } from "../runtime/alongside.ts";
import type { Metrics } from "../runtime/metrics.ts";
import { withTimeout } from "../runtime/timeout.ts";
import { currentTrace } from "../runtime/tracing/spans.ts";
import { catalog, type JobData, jobId, type QueueName, queueNames } from "./catalog.ts";
import { isRepeated } from "./job-trace.ts";
import { queuePrefix } from "./queue-prefix.ts";
import type { RedisClient } from "./redis-connections.ts";

/**
 * One job to enqueue: its payload, its retry number (the sweep counts up) and its delay in milliseconds. `ended` settles when
 * the caller has learned of the end of the work; see `MAX_HOLD_MS`. `others` waits for the requests that are on their way to
 * the same queue; see `MAX_ALONGSIDE_MS`.
 */
export type JobRequest<N extends QueueName = QueueName> = {
  data: JobData<N>;
  retry?: number;
  delayMs?: number;
  ended?: Promise<unknown> | undefined;
  others?: WaitForOthers | undefined;
};

/**
 * Adds jobs to a queue. Never throws and never waits for an unavailable Redis: the rows behind the jobs have a due time, and
 * the sweep enqueues the jobs that are missed here.
 */
export type Enqueue = <N extends QueueName>(queue: N, requests: readonly JobRequest<N>[]) => Promise<void>;

export type QueueDeps = {
  redis: RedisClient;
  prefix: string;
  log: Logger;
  metrics: Metrics;
  /** Returns the id of the API request that is being served, if any. */
  requestId?: () => string | undefined;
};

/**
 * How long a job holds back the next one of a queue that merges its jobs, milliseconds: twice as long as its work takes, at most
 * this. Requests that arrive meanwhile form the next job, so batches grow when the machine is busy. A full job is not held back.
 */
const MAX_HOLD_MS = 100;
/**
 * How long a job of a queue that merges its jobs waits for the requests that are on their way at that moment, milliseconds.
 * Requests that begin together become one job, although the first one arrives before the others.
 */
const MAX_ALONGSIDE_MS = 20;
/** Failed jobs that each queue keeps for operators. */
const KEPT_FAILED = 1_000;
/** Events of jobs that BullMQ keeps for each queue, about; no process reads them. */
const KEPT_EVENTS = 100;

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
        prefix: queuePrefix(prefix, name),
        skipVersionCheck: true,
        streams: { events: { maxLen: KEPT_EVENTS } },
        defaultJobOptions: {
          removeOnComplete: true,
          removeOnFail: { count: KEPT_FAILED },
          attempts: catalog[name].attempts,
          backoff: { type: "custom" },
        },
      });
      // A counter that appears only with its first failure has no rate for it.
      metrics.enqueueFailures.inc({ queue: name }, 0);
      queue.on("error", (error) => log.debug({ queue: name, err: error }, "queue connection error"));
      return [name, queue] as const;
    }),
  );
  const enqueue: Enqueue = async (name, requests) => {
    if (requests.length === 0) return;
    const request = requestId?.();
    const trace = currentTrace();
    const withCause = requests.map((one) => ({
      ...one,
      data: {
        ...one.data,
        ...(request === undefined ? {} : { requestId: request }),
        ...(trace === undefined || isRepeated(name, one.data) ? {} : { trace }),
      },
    }));
    // The sweep's retries have ids of their own, so they are not merged.
    const isFirst = requests.every(({ retry, delayMs }) => retry === undefined && delayMs === undefined);
    if (catalog[name].merge && isFirst) await addMerged(name, withCause);
    else await add(name, withCause);
  };
  /** Jobs that are enqueued while an earlier one is in progress, or at the same time, become one job. A full one is added at once. */
  const waiting = new Map<QueueName, { requests: JobRequest[]; fill: () => void; added: Promise<void> }>();
  const inProgress = new Map<QueueName, Promise<void>>();
  const addMerged = <N extends QueueName>(name: N, requests: readonly JobRequest<N>[]): Promise<void> => {
    const open = waiting.get(name) ?? openMerged(name);
    open.requests.push(...requests);
    if (open.requests.length >= MAX_MERGED) open.fill();
    return open.added;
  };
  const openMerged = (name: QueueName) => {
    const requests: JobRequest[] = [];
    const { promise: full, resolve: fill } = Promise.withResolvers<void>();
    const earlier = inProgress.get(name) ?? new Promise((resolve) => setImmediate(resolve));
    const added = Promise.race([earlier.then(() => awaitOthers(requests)), full]).then(() => {
      waiting.delete(name);
      const now = add(name, mergeRequests(name, requests));
      const progress = now
        .then((isAdded) => (isAdded ? holdBack(requests) : undefined))
        .then(() => {
          if (inProgress.get(name) === progress) inProgress.delete(name);
        });
      inProgress.set(name, progress);
      return now.then(() => undefined);
    });
    const open = { requests, fill, added };
    waiting.set(name, open);
    return open;
  };
  /** Adds jobs. Returns false when Redis has not taken them. */
  const add = async <N extends QueueName>(name: N, requests: readonly JobRequest<N>[]): Promise<boolean> => {
    const queue = queues.get(name);
    const ttl = catalog[name].onceInMs;
    const jobs = requests.map(({ data, retry, delayMs }) => {
      const id = jobId(name, data, retry ?? 0);
      const opts = {
        jobId: id,
        ...(ttl === undefined ? {} : { deduplication: { id, ttl } }),
        ...(delayMs === undefined ? {} : { delay: Math.max(0, delayMs) }),
      };
      return { name, data, opts };
    });
    try {
      // BullMQ waits without limit for the first connection, so a Redis that never was available would block the caller.
      if (redis.status !== "ready") throw new Error("redis is not connected");
      const [only] = jobs;
      // addBulk needs three commands where add needs one.
      if (only && jobs.length === 1) await queue?.add(only.name, only.data, only.opts);
      else await queue?.addBulk(jobs);
      return true;
    } catch (error) {
      metrics.enqueueFailures.inc({ queue: name }, requests.length);
      log.warn({ queue: name, jobs: requests.length, err: error }, "jobs not enqueued; the sweep retries");
      return false;
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

/** Waits for the end of the first of these requests, whose job takes all of them at once, and then as long again. */
async function holdBack(requests: readonly JobRequest[]): Promise<void> {
  const ends = requests.flatMap(({ ended }) => ended ?? []);
  if (ends.length === 0) return;
  const began = performance.now();
  await withTimeout(Promise.race(ends), MAX_HOLD_MS, "the job").catch(() => undefined);
  const took = performance.now() - began;
  await pause(Math.max(0, Math.min(took, MAX_HOLD_MS - took)));
}

/** Waits for the requests on their way with the first of these. Never throws: later requests wait for this job. */
async function awaitOthers([first]: readonly JobRequest[]): Promise<void> {
  const arrived = Promise.try(() => first?.others?.());
  await withTimeout(arrived, MAX_ALONGSIDE_MS, "requests").catch(() => undefined);
}

/** Payloads that are merged into one job at most. */
const MAX_MERGED = 100;

function mergeRequests<N extends QueueName>(name: N, requests: readonly JobRequest<N>[]): JobRequest<N>[] {
  const { merge } = catalog[name];
  if (!merge || requests.length === 1) return [...requests];
  const merged: JobRequest<N>[] = [];
  for (const ofKey of Map.groupBy(requests, ({ data }) => merge.keyOf(data)).values())
    for (let from = 0; from < ofKey.length; from += MAX_MERGED) {
      const [first, ...others] = ofKey.slice(from, from + MAX_MERGED).map(({ data }) => data);
      if (first) merged.push({ data: merge.all([first, ...others]) });
    }
  return merged;
}
