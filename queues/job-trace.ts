import type { Job } from "bullmq";
import { inNewTrace, inSharedSpan, isTracing, outsideTraces, type SpanDescription } from "../runtime/tracing/spans.ts";
import type { QueueName } from "./catalog.ts";
import { describeJob } from "./describe-job.ts";

/** What a job's data says about the traces that caused it. */
type Caused = { trace?: string | undefined; traces?: readonly string[] | undefined };

/** Returns true for work that is repeated within minutes whatever happens. It continues no trace, or the trace would never end. */
export function isRepeated(queue: QueueName, data: unknown): boolean {
  return describeJob(queue, data).rows.length === 0;
}

/**
 * Runs a job in the trace that caused it, or in a shared span when several have caused it. A job of repeated work starts a
 * trace of its own. Any other job without a sampled trace belongs to none.
 */
export function traceJob<T>(queue: QueueName, job: Job<Caused>, work: () => Promise<T>): Promise<T> {
  if (!isTracing()) return work();
  const { trace, traces } = job.data;
  // A job that has handed over and runs again would add to its trace for as long as there is work.
  const isRerun = job.attemptsStarted - 1 > job.attemptsMade;
  const causes = isRerun ? [] : (traces ?? [trace]).filter((one) => one !== undefined);
  const describe = (): SpanDescription => ({
    name: `process ${queue}`,
    kind: "consumer",
    attributes: {
      "messaging.system": "bullmq",
      "messaging.operation.type": "process",
      "messaging.destination.name": queue,
      "messaging.message.id": job.id ?? "",
      "pay.job.attempt": job.attemptsStarted,
      "pay.job.waited_ms": Math.max(0, (job.processedOn ?? job.timestamp) - job.timestamp - (job.opts.delay ?? 0)),
    },
  });
  if (causes.length > 0)
    return inSharedSpan(
      causes.map((one) => ({ trace: one })),
      describe,
      work,
    );
  return isRepeated(queue, job.data) ? inNewTrace(describe, work) : outsideTraces(work);
}
