import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { Metrics } from "../ops/metrics.ts";
import { catalog, type JobData, jobId, type QueueName, queueNames } from "./catalog.ts";

/** One job to be put on a queue: what it is about, the how-manieth ring for it (the sweep counts up), and its wait. */
export type Bell<N extends QueueName = QueueName> = { data: JobData<N>; again?: number; delayMs?: number };

/**
 * Puts jobs on a queue. Never throws and never waits for a Redis that is away: the rows the jobs speak of carry a due
 * time, and the sweep rings again what is missed here.
 */
export type Ring = <N extends QueueName>(queue: N, bells: readonly Bell<N>[]) => Promise<void>;

export type RingDeps = {
  redis: Redis;
  prefix: string;
  log: Logger;
  metrics: Metrics;
  /** The request that is being served, if one is. */
  requestId?: () => string | undefined;
};

/** Failed jobs kept for people to see, per queue. */
const KEPT_FAILED = 1_000;

/** Opens one BullMQ queue per catalogue name. Close after the last ring. */
export function openRing({ redis, prefix, log, metrics, requestId }: RingDeps): {
  ring: Ring;
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
      queue.on("error", (error) => log.debug({ queue: name, err: error }, "queue connection"));
      return [name, queue] as const;
    }),
  );
  const ring: Ring = async (name, bells) => {
    if (bells.length === 0) return;
    const cause = requestId?.();
    const caused = bells.map((bell) =>
      cause === undefined ? bell : { ...bell, data: { ...bell.data, requestId: cause } },
    );
    // The sweep's rings have their own ids.
    const isFirst = bells.every(({ again, delayMs }) => again === undefined && delayMs === undefined);
    if (catalog[name].merge && isFirst) await ringMerged(name, caused);
    else await add(name, caused);
  };
  /** Rings of one turn of the event loop become one job. */
  const waiting = new Map<QueueName, { bells: Bell[]; rung: Promise<void> }>();
  const ringMerged = <N extends QueueName>(name: N, bells: readonly Bell<N>[]): Promise<void> => {
    const open = waiting.get(name);
    open?.bells.push(...bells);
    if (open) return open.rung;
    const all: Bell[] = [...bells];
    const rung = new Promise((resolve) => setImmediate(resolve)).then(() => {
      waiting.delete(name);
      return add(name, mergeBells(name, all as Bell<N>[]));
    });
    waiting.set(name, { bells: all, rung });
    return rung;
  };
  const add = async <N extends QueueName>(name: N, bells: readonly Bell<N>[]): Promise<void> => {
    const queue = queues.get(name);
    const jobs = bells.map(({ data, again, delayMs }) => ({
      name,
      data,
      opts: { jobId: jobId(name, data, again ?? 0), ...(delayMs === undefined ? {} : { delay: Math.max(0, delayMs) }) },
    }));
    try {
      // BullMQ waits for a first connection without limit, so a Redis that was never there would hold the caller.
      if (redis.status !== "ready") throw new Error("redis is not connected");
      const [only] = jobs;
      // A bulk of one costs three commands instead of one.
      if (only && jobs.length === 1) await queue?.add(only.name, only.data, only.opts);
      else await queue?.addBulk(jobs);
    } catch (error) {
      metrics.ringFailures.inc({ queue: name }, bells.length);
      log.warn({ queue: name, jobs: bells.length, err: error }, "jobs not rung; the sweep will");
    }
  };
  return {
    ring,
    queues: [...queues.values()],
    close: async () => {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}

/** Jobs that one handler call may take. */
const MERGED = 100;

function mergeBells<N extends QueueName>(name: N, bells: readonly Bell<N>[]): Bell<N>[] {
  const merge = catalog[name].merge as ((all: readonly JobData<N>[]) => JobData<N>) | undefined;
  if (!merge || bells.length === 1) return [...bells];
  const merged: Bell<N>[] = [];
  for (let from = 0; from < bells.length; from += MERGED)
    merged.push({ data: merge(bells.slice(from, from + MERGED).map(({ data }) => data)) });
  return merged;
}
