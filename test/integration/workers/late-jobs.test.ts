import { expect, test } from "vitest";
import { noteSlow } from "../../../db/queries/webhook-endpoints.ts";
import { isTransient } from "../../../payments/is-transient.ts";
import { takeDueWork } from "../../../payments/maintenance/take-due-rows.ts";
import { sweep } from "../../../workers/enqueue-due.ts";
import { createHandlers } from "../../../workers/handlers.ts";
import { fundBuyer, startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { makeWebhookFixture } from "../../support/webhook-endpoint.ts";

const chain = await startChain();
const { signal } = new AbortController();
const MINUTE = 60_000;

test("a job that waited in the queue of fast endpoints sends nothing once its endpoint is slow, and the sweep enqueues it as slow", async () => {
  const { fixture, endpoint, id } = await makeWebhookFixture(chain);
  const handlers = createHandlers({ ...fixture.deps, isTransient });
  await fixture.create();
  const goOn = fixture.clock.stop();
  await sweep(fixture.deps);
  // Another job of the endpoint has found out that it is slow.
  await noteSlow(fixture.db, id, new Date(fixture.deps.now().getTime() + MINUTE));
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

test("a job that goes on with its endpoint after ten seconds stays the only one, and is enqueued again when it is lost", async () => {
  const { fixture, endpoint, id } = await makeWebhookFixture(chain);
  await noteSlow(fixture.db, id, new Date(fixture.deps.now().getTime() + 60 * MINUTE));
  await fixture.create();
  const goOn = fixture.clock.stop();
  const safeFetch: typeof fixture.deps.safeFetch = (request) => {
    fixture.clock.advance(11_000);
    return fixture.deps.safeFetch(request);
  };
  const handlers = createHandlers({ ...fixture.deps, safeFetch, isTransient });
  const run = () => handlers["deliver-slow-webhook"]({ endpointId: id }, signal);
  expect(await run()).toEqual({ rerunInMs: 0 });
  await fixture.create();
  const take = async () => (await takeDueWork(fixture.deps, "endpoints")).map(({ lost }) => lost);
  expect(await take()).toEqual([]);
  fixture.clock.advance(10_000);
  expect(await take()).toEqual([true]);
  expect(await run()).toEqual({ rerunInMs: 0 });
  expect(endpoint.arrivals).toHaveLength(2);
  goOn();
});

test("of several jobs for a payment that stays undecided during an outage none goes on, and the sweep enqueues one later", async () => {
  const fixture = await makeMerchantFixture(chain);
  const id = await fixture.create(100n, { expiresAt: new Date(fixture.deps.now().getTime() + MINUTE) });
  await fixture.offer(id, await fundBuyer(chain));
  fixture.clock.advance(10 * MINUTE);
  const handle = createHandlers({ ...fixture.deps, isTransient })["expire-payment"];
  const jobs = Array.from({ length: 3 }, () => handle({ paymentId: id }, signal));
  expect(await Promise.all(jobs)).toEqual([{ done: true }, { done: true }, { done: true }]);
  const take = async () => (await takeDueWork(fixture.deps, "payments")).map((due) => due.id);
  expect(await take()).toEqual([]);
  fixture.clock.advance(MINUTE);
  expect([await take(), await take()]).toEqual([[id], []]);
});
