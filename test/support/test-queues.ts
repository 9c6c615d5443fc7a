import type { Worker } from "bullmq";
import { Registry } from "prom-client";
import type { QueueName } from "../../queues/catalog.ts";
import { consume, type Handler } from "../../queues/consume.ts";
import { openJobQueues } from "../../queues/enqueue.ts";
import { openRedis, openRetryingRedis } from "../../queues/redis-connections.ts";
import { createLog } from "../../runtime/log.ts";
import { readLogFields, withLogFields } from "../../runtime/log-context.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import { describeWithCode } from "../../runtime/redaction.ts";
import { addCleanup } from "./cleanups.ts";
import { redisPrefix } from "./redis-prefix.ts";
import { waitFor } from "./wait-for.ts";

/** Opens the queues under their own prefix, on the shared Redis or on another one, with workers for any handler. */
export async function openQueues(at: { url?: string; prefix?: string } = {}) {
  const shared = redisPrefix();
  const { url, prefix } = { url: at.url ?? shared.url, prefix: at.prefix ?? shared.prefix };
  const lines: string[] = [];
  const log = createLog({ level: "debug", role: "test" }, { write: (line) => void lines.push(line) });
  const metrics = createMetrics(new Registry(), "worker");
  const redis = openRedis(url, () => undefined);
  const { enqueue, queues, close } = openJobQueues({
    redis,
    prefix,
    log,
    metrics,
    requestId: () => readLogFields().requestId,
  });
  const queue = (name: QueueName) => {
    const found = queues.find((one) => one.name === name);
    if (!found) throw new Error(`there is no queue ${name}`);
    return found;
  };
  const workers: Worker[] = [];
  const connections = [redis];
  addCleanup(async () => {
    await Promise.all(workers.map((worker) => worker.close(true)));
    await close();
    for (const connection of connections) connection.disconnect();
  });
  /** Serves a queue. An error that the handler throws is transient if it has `transient: true`. */
  const serve = <N extends QueueName>(name: N, handle: Handler<N>): Worker => {
    const connect = () => {
      const connection = openRetryingRedis(url, () => undefined);
      connections.push(connection);
      return connection;
    };
    const worker = consume(name, handle, {
      connect,
      prefix,
      signal: new AbortController().signal,
      isTransient: (cause) => (cause as { transient?: boolean }).transient === true,
      describe: describeWithCode,
      inContext: withLogFields,
      log,
      metrics,
    });
    workers.push(worker);
    return worker;
  };
  return {
    url,
    prefix,
    redis,
    enqueue,
    queue,
    serve,
    metrics,
    lines,
    ready: () => waitFor(() => redis.status === "ready", { within: 10_000, what: "Redis answers" }),
    /** Counts a queue's jobs in all states, and those that are kept as failed. */
    count: async (name: QueueName) => {
      const counts = await queue(name).getJobCounts("waiting", "active", "delayed", "failed", "completed");
      return { all: Object.values(counts).reduce((sum, one) => sum + one, 0), failed: counts["failed"] ?? 0 };
    },
  };
}

/** Returns a transient error. */
export const transientError = () => Object.assign(new Error("the chain does not answer"), { transient: true });
