import { expect, test } from "vitest";
import { noteSlow } from "../../../db/queries/webhook-endpoints.ts";
import { isTransient } from "../../../payments/is-transient.ts";
import { sweep } from "../../../workers/enqueue-due.ts";
import { createHandlers } from "../../../workers/handlers.ts";
import { startChain } from "../../support/evm-chain.ts";
import { makeWebhookFixture } from "../../support/webhook-endpoint.ts";

const chain = await startChain();
const { signal } = new AbortController();

test("a job that waited in the queue of fast endpoints sends nothing once its endpoint is slow, and the sweep enqueues it as slow", async () => {
  const { fixture, endpoint, id } = await makeWebhookFixture(chain);
  const handlers = createHandlers({ ...fixture.deps, isTransient });
  await fixture.create();
  const goOn = fixture.clock.stop();
  await sweep(fixture.deps);
  // Another job of the endpoint has found out that it is slow.
  await noteSlow(fixture.db, id, new Date(fixture.deps.now().getTime() + 60_000));
  expect(await handlers["deliver-webhook"]({ endpointId: id }, signal)).toEqual({ done: true });
  expect(endpoint.arrivals).toEqual([]);

  fixture.enqueued.splice(0);
  fixture.clock.advance(5_000);
  await sweep(fixture.deps);
  const jobs = fixture.enqueued.filter(({ queue }) => queue.endsWith("-webhook"));
  expect(jobs.map(({ queue, job }) => [queue, job.data])).toEqual([["deliver-slow-webhook", { endpointId: id }]]);
  goOn();
  expect(await handlers["deliver-slow-webhook"]({ endpointId: id }, signal)).toEqual({ done: true });
  expect(endpoint.arrivals).toHaveLength(1);
});
