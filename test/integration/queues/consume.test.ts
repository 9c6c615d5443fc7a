import type { Job, Queue } from "bullmq";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { consume, type Handler } from "../../../queues/consume.ts";
import { openJobQueues } from "../../../queues/enqueue.ts";
import { openRedis, openRetryingRedis } from "../../../queues/redis-connections.ts";
import { createLog } from "../../../runtime/log.ts";
import { withLogFields } from "../../../runtime/log-context.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { describeWithCode } from "../../../runtime/redaction.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { redisPrefix } from "../../support/redis-prefix.ts";
import { waitFor } from "../../support/wait-for.ts";

const bytes = `0x02f8b0${"ab".repeat(120)}`;
const paymentId = `pay_${"0".repeat(32)}`;
const jobId = `expire-payment-${paymentId}-0`;

/** An error as viem throws it: the whole request is in the message and again in the stack. */
function chainError(): Error {
  return Object.assign(new Error(`HTTP request failed.\n\nRequest body: {"params":["${bytes}"]}`), {
    name: "HttpRequestError",
    shortMessage: "HTTP request failed.",
  });
}

/** Serves one queue under its own prefix with this handler, and enqueues one job. */
async function serve(handle: Handler<"expire-payment">, isTransient: (cause: unknown) => boolean): Promise<Queue> {
  const { url, prefix } = redisPrefix();
  const log = createLog({ level: "silent", role: "worker" });
  const metrics = createMetrics(new Registry(), "worker");
  const redis = openRedis(url, () => undefined);
  const blocking = openRetryingRedis(url, () => undefined);
  await waitFor(() => redis.status === "ready", { within: 10_000 });
  const { enqueue, queues, close } = openJobQueues({ redis, prefix, log, metrics });
  const { signal } = new AbortController();
  const reporting = { describe: describeWithCode, inContext: withLogFields, log, metrics };
  const options = { connect: () => blocking, prefix, signal, isTransient, ...reporting };
  const worker = consume("expire-payment", handle, options);
  addCleanup(async () => {
    await worker.close();
    await close();
    redis.disconnect();
    blocking.disconnect();
  });
  await enqueue("expire-payment", [{ data: { paymentId } }]);
  const queue = queues.find(({ name }) => name === "expire-payment");
  if (!queue) throw new Error("there is no such queue");
  return queue;
}

const stored = async (queue: Queue): Promise<Job | undefined> => queue.getJob(jobId);

test("a failed job keeps the error's description without the request bytes", async () => {
  const queue = await serve(
    () => Promise.reject(chainError()),
    () => false,
  );
  const job = await waitFor(async () => ((await stored(queue))?.failedReason ? stored(queue) : undefined), {
    within: 10_000,
  });
  expect(job.failedReason).toBe("HttpRequestError: HTTP request failed.");
  expect(job.stacktrace?.length).toBeGreaterThan(0);
  expect(JSON.stringify(job)).not.toContain("abab");
});

test("a retried job keeps no request bytes either, and completes", async () => {
  const gate = Promise.withResolvers<void>();
  let tries = 0;
  const queue = await serve(
    async () => {
      tries += 1;
      if (tries === 1) throw chainError();
      await gate.promise;
      return { done: true };
    },
    () => true,
  );
  await waitFor(() => tries === 2, { within: 10_000 });
  const job = await stored(queue);
  expect(job?.stacktrace?.join("\n")).toContain("HttpRequestError: HTTP request failed.");
  expect(JSON.stringify(job)).not.toContain("abab");
  gate.resolve();
  await waitFor(async () => (await stored(queue)) === undefined, { within: 10_000 });
});
