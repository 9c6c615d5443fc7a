import { expect, test } from "vitest";
import { freePort } from "../../../local/free-ports.ts";
import { newId } from "../../../payments/ids.ts";
import { startPrivateRedis } from "../../support/private-services.ts";
import { openQueues } from "../../support/test-queues.ts";
import { waitFor } from "../../support/wait-for.ts";

const makeJob = () => ({ data: { paymentId: newId("pay", new Date()) } });
const failuresOf = async (queues: Awaited<ReturnType<typeof openQueues>>) =>
  (await queues.metrics.enqueueFailures.get()).values.find(({ labels }) => labels.queue === "expire-payment")?.value ??
  0;

/** How long enqueueing may take while Redis is unavailable; an HTTP call waits for it. */
const SOON_MS = 2_000;

test("enqueueing to a Redis that was never there neither throws nor waits, and is counted", async () => {
  const queues = await openQueues({ url: `redis://127.0.0.1:${await freePort()}` });
  const begun = Date.now();
  await queues.enqueue("expire-payment", [makeJob(), makeJob()]);
  expect(Date.now() - begun).toBeLessThan(SOON_MS);
  expect(await failuresOf(queues)).toBe(2);
  expect(queues.lines.join("")).toContain("jobs not enqueued; the sweep retries");
});

test("enqueueing to a Redis that has stopped neither throws nor waits, and works again when it is back", async () => {
  const redis = await startPrivateRedis();
  const queues = await openQueues({ url: redis.url });
  await queues.ready();
  await queues.enqueue("expire-payment", [makeJob()]);
  expect((await queues.count("expire-payment")).all).toBe(1);
  await redis.kill("SIGKILL");
  const begun = Date.now();
  await Promise.all(Array.from({ length: 20 }, () => queues.enqueue("expire-payment", [makeJob()])));
  expect(Date.now() - begun).toBeLessThan(SOON_MS);
  expect(await failuresOf(queues)).toBe(20);
  await redis.start();
  await queues.ready();
  await queues.enqueue("expire-payment", [makeJob()]);
  expect(await failuresOf(queues)).toBe(20);
});

test("a worker serves jobs again after Redis was killed and restarted", async () => {
  const redis = await startPrivateRedis();
  const queues = await openQueues({ url: redis.url });
  await queues.ready();
  const run: string[] = [];
  queues.serve("expire-payment", async ({ paymentId }) => {
    run.push(paymentId);
    return { done: true };
  });
  const [before, after] = [makeJob(), makeJob()];
  await queues.enqueue("expire-payment", [before]);
  await waitFor(() => run.length === 1, { within: 10_000 });
  await redis.kill("SIGKILL");
  await redis.start();
  await queues.ready();
  await queues.enqueue("expire-payment", [after]);
  await waitFor(() => run.includes(after.data.paymentId), { within: 20_000, what: "the worker serves jobs again" });
  expect(run).toEqual([before.data.paymentId, after.data.paymentId]);
});
