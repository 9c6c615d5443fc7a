import { DelayedError, type Job, UnrecoverableError, Worker } from "bullmq";
import type { Logger } from "pino";
import type { Metrics } from "../runtime/metrics.ts";
import { stackFrames } from "../runtime/redaction.ts";
import { catalog, type JobData, type QueueName } from "./catalog.ts";
import { traceJob } from "./job-trace.ts";
import { queuePrefix } from "./queue-prefix.ts";
import type { RedisClient } from "./redis-connections.ts";

/** What a handler returns: done, or run again after a delay in milliseconds. A delay uses up no attempt. */
export type JobResult = { done: true } | { rerunInMs: number };
export type Handler<N extends QueueName> = (data: JobData<N>, signal: AbortSignal) => Promise<JobResult>;
export type Handlers = { readonly [N in QueueName]: Handler<N> };

export type ConsumeOptions = {
  /** Opens the blocking connection of one queue. */
  connect: () => RedisClient;
  prefix: string;
  /** Aborted when the process drains. Long handlers then return early. */
  signal: AbortSignal;
  /** Decides about a thrown error: BullMQ retries transient errors (true) and keeps jobs with other errors for operators. */
  isTransient: (cause: unknown) => boolean;
  /**
   * Describes a thrown error in one line that is safe to keep in Redis and to show in bull-board. Messages of libraries can
   * contain request bodies and signed bytes.
   */
  describe: (cause: unknown) => string;
  /** Runs a handler with these fields in its log lines and in the jobs that it enqueues. */
  inContext: <T>(fields: { requestId: string | undefined; job: string | undefined }, work: () => T) => T;
  log: Logger;
  metrics: Metrics;
};

/** Longest delay before a retry, milliseconds. */
const MAX_BACKOFF_MS = 10_000;

/**
 * Runs the jobs of one queue with its handler. When a worker dies, another one runs its job again after `lockDuration`, so
 * handlers must be idempotent. Close the returned worker to drain it.
 */
export function consume<N extends QueueName>(name: N, handle: Handler<N>, options: ConsumeOptions): Worker {
  const { metrics, log } = options;
  const spec = catalog[name];

  const describeJob = (job: Job) => ({ queue: name, job: job.id, ...describeRequests(listRequests(job)) });

  /**
   * Throws transient errors for BullMQ to retry, and returns when the attempts are used up. Any other error is a bug and
   * fails the job for good. Always throws a new error, because BullMQ keeps its message and its stack with the job.
   */
  const handleError = (job: Job, cause: unknown): "gave_up" => {
    if (!options.isTransient(cause)) {
      log.error({ ...describeJob(job), err: cause }, "job failed and is kept");
      throw withFramesOf(cause, new UnrecoverableError(options.describe(cause)));
    }
    log.warn({ ...describeJob(job), attemptsMade: job.attemptsMade + 1, err: cause }, "transient error");
    if (job.attemptsMade + 1 < spec.attempts) throw withFramesOf(cause, new Error(options.describe(cause)));
    return "gave_up";
  };

  const run = async (job: Job, token?: string): Promise<void> => {
    const stop = metrics.jobSeconds.startTimer({ queue: name });
    const due = job.timestamp + (job.opts.delay ?? 0);
    if (job.attemptsStarted === 1)
      metrics.jobWaitSeconds.observe({ queue: name }, Math.max(0, Date.now() - due) / 1000);
    const end = (outcome: "done" | "rerun" | "retried" | "gave_up" | "failed") => {
      metrics.jobs.inc({ queue: name, outcome });
      const seconds = stop({ outcome });
      const ended = { ...describeJob(job), outcome, ms: Math.round(seconds * 1_000) };
      // One line for all API requests that caused the job. Other jobs are only counted, except at debug level.
      log[listRequests(job).length > 0 ? "info" : "debug"](ended, "job ended");
    };
    const parsed = spec.data.safeParse(job.data);
    if (!parsed.success) {
      end("failed");
      throw new UnrecoverableError(
        `not a ${name} job: ${parsed.error.issues.map((issue) => issue.path.join(".")).join(", ")}`,
      );
    }
    const work = async (): Promise<JobResult | "gave_up"> => {
      try {
        const outcome = await handle(parsed.data, options.signal).catch((cause: unknown) => handleError(job, cause));
        end(outcome === "gave_up" ? outcome : "done" in outcome ? "done" : "rerun");
        return outcome;
      } catch (error) {
        end(error instanceof UnrecoverableError ? "failed" : "retried");
        throw error;
      }
    };
    const [requestId, ...others] = listRequests(job);
    const context = { requestId: others.length > 0 ? undefined : requestId, job: job.id };
    const outcome = await options.inContext(context, () => traceJob(name, job, work));
    if (outcome === "gave_up" || "done" in outcome) return;
    await job.moveToDelayed(Date.now() + outcome.rerunInMs, token);
    throw new DelayedError();
  };

  const worker = new Worker(name, run, {
    connection: options.connect(),
    prefix: queuePrefix(options.prefix, name),
    concurrency: spec.concurrency,
    skipVersionCheck: true,
    // Another worker takes over the job of a killed one within seconds. Row states, not this lock, make that safe.
    lockDuration: 10_000,
    stalledInterval: 5_000,
    maxStalledCount: 1_000,
    // After a lost connection. BullMQ waits 15 s, longer than a failover takes.
    runRetryDelay: 1_000,
    settings: { backoffStrategy: (attemptsMade) => Math.min(spec.backoffMs * 2 ** (attemptsMade - 1), MAX_BACKOFF_MS) },
  });
  worker.on("error", (error) => log.debug({ queue: name, err: error }, "worker connection error"));
  // A counter that appears only with its first job has no rate for it.
  metrics.stalledJobs.inc({ queue: name }, 0);
  worker.on("stalled", (job) => {
    metrics.stalledJobs.inc({ queue: name });
    log.warn({ queue: name, job }, "job's worker died; the job runs again");
  });
  return worker;
}

/** Gives the error that BullMQ keeps with the job the place where the cause was thrown. */
function withFramesOf(cause: unknown, error: Error): Error {
  if (cause instanceof Error) error.stack = `${error.name}: ${error.message}\n${stackFrames(cause)}`;
  return error;
}

/** Returns the member of a log line that names the API requests which caused a job. */
function describeRequests([requestId, ...others]: readonly string[]) {
  return others.length > 0 ? { requestIds: [requestId, ...others] } : { requestId };
}

/** Returns the ids of the API requests that caused a job. */
function listRequests({ data }: Job<{ requestId?: string; requestIds?: string[] }>): string[] {
  const { requestId, requestIds } = data;
  return requestIds ?? (requestId === undefined ? [] : [requestId]);
}
