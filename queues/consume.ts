import { DelayedError, type Job, UnrecoverableError, Worker } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { Metrics } from "../ops/metrics.ts";
import { catalog, type JobData, type QueueName } from "./catalog.ts";

/** What a handler says: finished, or look again in so many milliseconds. Waiting is a value and burns no try. */
export type Outcome = { done: true } | { again: number };
export type Handler<N extends QueueName> = (data: JobData<N>, signal: AbortSignal) => Promise<Outcome>;
export type Handlers = { readonly [N in QueueName]: Handler<N> };

export type ConsumeOptions = {
  /** Opens a blocking connection for one queue. */
  connect: () => Redis;
  prefix: string;
  /** Aborted when the process drains; long handlers end early on it. */
  signal: AbortSignal;
  /** The one judge of a thrown error: passing trouble (true) is tried again, the rest is kept for people. */
  isTransient: (cause: unknown) => boolean;
  /**
   * One line about a thrown error that is safe to keep in Redis and to show in bull-board: libraries put request bodies
   * and signed bytes into their messages.
   */
  describe: (cause: unknown) => string;
  /** Runs a handler so that its log lines, and the jobs it rings, carry these. */
  inContext: <T>(fields: { requestId: string | undefined; job: string | undefined }, work: () => T) => T;
  log: Logger;
  metrics: Metrics;
};

/** Longest wait between tries on passing trouble, milliseconds. */
const LONGEST_BACKOFF_MS = 10_000;

/**
 * Serves one queue with its handler. A worker that dies is noticed after `lockDuration`, its job is run by another
 * one: handlers are safe to repeat. Close the worker to drain it.
 */
export function consume<N extends QueueName>(name: N, handle: Handler<N>, options: ConsumeOptions): Worker {
  const { metrics, log } = options;
  const spec = catalog[name];

  const told = (job: Job) => ({ queue: name, job: job.id, requestId: listCauses(job).join(",") || undefined });

  /**
   * Passing trouble is thrown for BullMQ to try again, until the tries are used up; anything else is a bug. What is
   * thrown is always a new error, because BullMQ keeps its message and its stack with the job.
   */
  const judge = (job: Job, cause: unknown): "gave_up" => {
    if (!options.isTransient(cause)) {
      log.error({ ...told(job), err: cause }, "job failed and is kept");
      throw new UnrecoverableError(options.describe(cause));
    }
    log.warn({ ...told(job), tries: job.attemptsMade + 1, err: cause }, "passing trouble");
    if (job.attemptsMade + 1 < spec.attempts) throw new Error(options.describe(cause));
    return "gave_up";
  };

  const run = async (job: Job, token?: string): Promise<void> => {
    const stop = metrics.jobSeconds.startTimer({ queue: name });
    const due = job.timestamp + (job.opts.delay ?? 0);
    if (job.attemptsStarted === 1)
      metrics.jobWaitSeconds.observe({ queue: name }, Math.max(0, Date.now() - due) / 1000);
    const end = (outcome: "done" | "again" | "retried" | "gave_up" | "failed") => {
      metrics.jobs.inc({ queue: name, outcome });
      const seconds = stop({ outcome });
      const ended = { ...told(job), outcome, ms: Math.round(seconds * 1_000) };
      // A line for each request that has caused the job; what nobody has asked for is counted.
      const causes = listCauses(job);
      for (const requestId of causes) log.info({ ...ended, requestId }, "job ended");
      if (causes.length === 0) log.debug(ended, "job ended");
    };
    const parsed = spec.data.safeParse(job.data);
    if (!parsed.success) {
      end("failed");
      throw new UnrecoverableError(
        `not a ${name} job: ${parsed.error.issues.map((issue) => issue.path.join(".")).join(", ")}`,
      );
    }
    let outcome: Outcome | "gave_up";
    try {
      const [requestId, ...others] = listCauses(job);
      const work = () => handle(parsed.data as JobData<N>, options.signal);
      const context = { requestId: others.length > 0 ? undefined : requestId, job: job.id };
      outcome = await options.inContext(context, work).catch((cause: unknown) => judge(job, cause));
    } catch (error) {
      end(error instanceof UnrecoverableError ? "failed" : "retried");
      throw error;
    }
    if (outcome === "gave_up") return end("gave_up");
    if ("done" in outcome) return end("done");
    end("again");
    await job.moveToDelayed(Date.now() + outcome.again, token);
    throw new DelayedError();
  };

  const worker = new Worker(name, run, {
    connection: options.connect(),
    prefix: options.prefix,
    concurrency: spec.concurrency,
    skipVersionCheck: true,
    // A killed worker's job is somebody else's within seconds; our rows, not this lock, keep it from doing harm.
    lockDuration: 10_000,
    stalledInterval: 5_000,
    maxStalledCount: 1_000,
    settings: { backoffStrategy: (triesMade) => Math.min(spec.backoffMs * 2 ** (triesMade - 1), LONGEST_BACKOFF_MS) },
  });
  worker.on("error", (error) => log.debug({ queue: name, err: error }, "worker connection"));
  worker.on("stalled", (job) => log.warn({ queue: name, job }, "a job's worker had died; it runs again"));
  return worker;
}

/** The requests that have caused a job. */
function listCauses({ data }: Job): string[] {
  const { requestId, requestIds } = data as { requestId?: string; requestIds?: string[] };
  return requestIds ?? (requestId === undefined ? [] : [requestId]);
}
