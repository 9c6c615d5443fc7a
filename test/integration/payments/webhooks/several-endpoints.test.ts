import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { takeDueWork } from "../../../../payments/maintenance/take-due-rows.ts";
import { registerApprovalKey } from "../../../../payments/merchants/approval-keys.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { changeEndpoint } from "../../../../payments/webhooks/change-endpoints.ts";
import { deliverDue } from "../../../../payments/webhooks/deliver-events.ts";
import { findEndpoint } from "../../../../payments/webhooks/endpoint-views.ts";
import { findDelivery, listDeliveries } from "../../../../payments/webhooks/list-deliveries.ts";
import { replayEvents, sendTestEvent } from "../../../../payments/webhooks/replay-events.ts";
import { sweep } from "../../../../workers/enqueue-due.ts";
import { makeApprovalKey } from "../../../support/approval-key.ts";
import { allEntries } from "../../../support/audited-changes.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { insertPaymentRow } from "../../../support/insert-rows.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { waitFor } from "../../../support/wait-for.ts";
import {
  deliverAll,
  makeWebhookFixture,
  registerEndpoint,
  startWebhookEndpoint,
  verifyReceivedWebhook,
} from "../../../support/webhook-endpoint.ts";

const chain = await startChain();
const HOUR = 60 * 60_000;
const DAY = 24 * HOUR;

describe("several endpoints of an account", () => {
  test("each gets an event under the same id, signed with its own secret", async () => {
    const { fixture, endpoint, secret, deliver } = await makeWebhookFixture(chain);
    const other = await startWebhookEndpoint();
    const second = await registerEndpoint(fixture, other.url);
    await deliver();
    endpoint.arrivals.splice(0);
    await fixture.create();
    await deliver();
    const [here, there] = [endpoint.arrivals[0], other.arrivals[0]];
    if (!here || !there) throw new Error("an endpoint has received nothing");
    expect(here.event.id).toBe(there.event.id);
    expect(here.body).toBe(there.body);
    verifyReceivedWebhook(secret, here);
    verifyReceivedWebhook(second.secret, there);
    expect(() => verifyReceivedWebhook(secret, there)).toThrow();
  });

  test("each gets only the types and merchants of its filters, and a thin payload holds only ids", async () => {
    const { fixture, endpoint, deliver, query } = await makeWebhookFixture(chain);
    const { accountId, mode, merchantId } = fixture;
    const details = { name: "Second", email: "second@example.test" };
    const { id: second } = await createMerchant(fixture.deps, { actor: testActor, accountId, mode, ...details });
    const [thin, mine] = [await startWebhookEndpoint(), await startWebhookEndpoint()];
    await registerEndpoint(fixture, thin.url, { eventTypes: ["payment.created"], payload: "thin" });
    await registerEndpoint(fixture, mine.url, { merchantIds: [merchantId], eventTypes: ["payment.created"] });
    const deps = { ...fixture.deps, validateUrl: () => undefined };
    unwrap(await changeEndpoint(deps, { ...query, eventTypes: ["payment.succeeded"] }));
    endpoint.arrivals.splice(0);
    const own = await fixture.create();
    // Events that are due at the same time are sent at the same time, and may arrive in any order.
    await deliver();
    const others = await insertPaymentRow(fixture.db, { accountId, merchantId: second }, { mode });
    await deliver();
    expect(endpoint.types().filter((type) => type.startsWith("payment."))).toEqual([]);
    expect(mine.arrivals.map(({ event }) => event.data.payment_id)).toEqual([own]);
    expect(thin.arrivals.map(({ event }) => event.data)).toEqual([
      { payment_id: own, merchant_id: merchantId, live: true },
      { payment_id: others, merchant_id: second, live: true },
    ]);
  });

  test("one that hangs delays no event of another", async () => {
    const { fixture, endpoint, id: hanging } = await makeWebhookFixture(chain);
    const other = await startWebhookEndpoint();
    const { id } = await registerEndpoint(fixture, other.url);
    endpoint.answer(() => undefined);
    for (let count = 0; count < 5; count += 1) await fixture.create();
    const safeFetch: typeof fixture.deps.safeFetch = (request) =>
      fixture.deps.safeFetch({ ...request, timeoutMs: 2_000 });
    const { signal } = new AbortController();
    const stuck = deliverDue({ ...fixture.deps, safeFetch }, { endpointId: hanging, signal });
    await deliverDue(fixture.deps, { endpointId: id, signal });
    expect(other.arrivals).toHaveLength(5);
    const rows = await fixture.db.selectFrom("webhook_delivery").select(["endpoint_id", "state"]).execute();
    expect(rows.filter((row) => row.endpoint_id === hanging).every(({ state }) => state === "pending")).toBe(true);
    await stuck;
  });

  test("one that hangs gets no further event in the queue of the others, and is served in a queue of its own", async () => {
    const { fixture, endpoint, id: hanging } = await makeWebhookFixture(chain);
    const other = await startWebhookEndpoint();
    const { id } = await registerEndpoint(fixture, other.url);
    await deliverAll(fixture);
    endpoint.answer(() => undefined);
    const held = await fixture.create();
    const safeFetch: typeof fixture.deps.safeFetch = (request) =>
      fixture.deps.safeFetch({ ...request, timeoutMs: 5_000 });
    const deps = { ...fixture.deps, safeFetch };
    const { signal } = new AbortController();
    const run = deliverDue(deps, { endpointId: hanging, signal });
    await waitFor(async () => (await slowEndpoints()).length > 0, { within: 20_000, what: "the endpoint to be slow" });
    const later = await fixture.create();
    expect(await run).toBe("done");
    expect([endpoint.of(held).length, endpoint.of(later).length]).toEqual([1, 0]);

    fixture.enqueued.splice(0);
    await sweep(fixture.deps);
    const jobs = fixture.enqueued.filter(({ queue }) => queue.endsWith("-webhook"));
    expect(jobs.map(({ queue, job }) => [queue, job.data])).toEqual([
      ["deliver-webhook", { endpointId: id }],
      ["deliver-slow-webhook", { endpointId: hanging }],
    ]);
    endpoint.answer(200);
    await deliverDue(deps, { endpointId: hanging, signal });
    expect(endpoint.of(later)).toHaveLength(1);
    fixture.clock.advance(HOUR);
    await fixture.create();
    expect((await takeDueWork(fixture.deps, "endpoints")).map(({ slow }) => slow)).toEqual([false, false]);

    function slowEndpoints() {
      return fixture.db.selectFrom("webhook_endpoint").select("id").where("slow_until", "is not", null).execute();
    }
  });
});

test("an endpoint that responds at once is not slow when our own database stalls for longer than it may take", async () => {
  const { fixture, endpoint, id } = await makeWebhookFixture(chain);
  const first = await fixture.create();
  await fixture.create();
  const stalled = Promise.withResolvers<void>();
  const later: (() => void)[] = [];
  endpoint.answer(({ event }, response) => {
    if (event.data.payment_id === first) response.end();
    else later.push(() => response.end());
  });
  // The statement that records the first result waits for this lock.
  const stall = fixture.db.transaction().execute(async (db) => {
    await db.selectFrom("webhook_delivery").select("event_id").forUpdate().execute();
    await stalled.promise;
  });
  let responses = 0;
  const safeFetch: typeof fixture.deps.safeFetch = async (request) => {
    const response = await fixture.deps.safeFetch(request);
    responses += 1;
    return response;
  };
  const { signal } = new AbortController();
  const run = deliverDue({ ...fixture.deps, safeFetch }, { endpointId: id, signal });
  const isWaiting = async () => {
    const { rows } = await sql`select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(fixture.db);
    return rows.length > 0 && later.length > 0;
  };
  await waitFor(isWaiting, { within: 20_000, what: "the statement to wait for the lock" });
  for (const respond of later) respond();
  await waitFor(async () => responses === 2, { within: 20_000 });
  fixture.clock.advance(4_000);
  stalled.resolve();
  await stall;
  expect(await run).toBe("done");
  const rows = await fixture.db.selectFrom("webhook_endpoint").select("slow_until").where("id", "=", id).execute();
  expect(rows).toEqual([{ slow_until: null }]);
  expect(endpoint.arrivals).toHaveLength(2);
});

describe("an endpoint that fails for five days", () => {
  test("is disabled with an event at the others, a log line and an audit entry, and gets what it missed by a replay", async () => {
    const { fixture, endpoint, deliver, query, id } = await makeWebhookFixture(chain);
    const other = await startWebhookEndpoint();
    await registerEndpoint(fixture, other.url);
    endpoint.answer(500);
    const created: string[] = [];
    for (let count = 0; count < 12; count += 1) {
      created.push(await fixture.create());
      await deliver();
      fixture.clock.advance(9.9 * HOUR);
    }
    expect(unwrap(await findEndpoint(fixture.deps, query)).status).toBe("enabled");
    fixture.clock.advance(1.5 * HOUR);
    await fixture.create();
    await deliver();
    await deliver();
    expect(unwrap(await findEndpoint(fixture.deps, query))).toMatchObject({
      status: "disabled",
      disabledReason: "failing",
      disabledAt: expect.any(Date),
    });
    const notice = other.arrivals.find(({ event }) => event.type === "webhook_endpoint.disabled");
    expect(notice?.event.data).toMatchObject({ endpoint_id: id, live: true, reason: "failing", changed_by: null });
    expect(fixture.lines.join("")).toContain("webhook endpoint disabled");
    expect(fixture.lines.join("")).not.toContain("s3cret");
    expect(await allEntries(fixture.db)).toContainEqual(
      expect.objectContaining({ action: "webhook_endpoint.disabled", subject: id, actor_kind: "worker" }),
    );

    const sent = endpoint.arrivals.length;
    const missed = await fixture.create();
    fixture.clock.advance(DAY);
    await deliver();
    expect(endpoint.arrivals).toHaveLength(sent);
    // As docs/webhooks.md says.
    const { disabledAt } = unwrap(await findEndpoint(fixture.deps, query));
    const which = { since: new Date((disabledAt?.getTime() ?? 0) - 5 * 60_000), until: fixture.deps.now() };
    expect(await replayEvents(fixture.deps, { ...query, which })).toMatchObject({ code: "invalid_state" });
    const deps = { ...fixture.deps, validateUrl: () => undefined };
    const enabled = unwrap(await changeEndpoint(deps, { ...query, status: "enabled" }));
    expect(enabled).toMatchObject({ status: "enabled", failingSince: null });
    endpoint.answer(200);
    unwrap(await replayEvents(fixture.deps, { ...query, which: { state: "given_up" } }));
    unwrap(await replayEvents(fixture.deps, { ...query, which }));
    const arrived = endpoint.arrivals.length;
    await deliver();
    const resent = new Set(endpoint.arrivals.slice(arrived).map(({ event }) => event.data.payment_id));
    expect([...created, missed].filter((paymentId) => !resent.has(paymentId))).toEqual([]);
  });

  test("stays enabled when it fails once, and once more after days without events", async () => {
    const { fixture, endpoint, deliver, query } = await makeWebhookFixture(chain);
    endpoint.answer(500);
    await fixture.create();
    await deliver();
    fixture.clock.advance(6 * DAY);
    const since = fixture.deps.now();
    await fixture.create();
    await deliver();
    const { status, failingSince } = unwrap(await findEndpoint(fixture.deps, query));
    expect(status).toBe("enabled");
    expect(failingSince?.getTime()).toBeGreaterThanOrEqual(since.getTime());
  });

  test("is neither failing nor healthy because of test events", async () => {
    const { fixture, endpoint, deliver, query } = await makeWebhookFixture(chain);
    const isFailing = async () => unwrap(await findEndpoint(fixture.deps, query)).failingSince !== null;
    endpoint.answer(500);
    unwrap(await sendTestEvent(fixture.deps, query));
    await deliver();
    expect([endpoint.arrivals.length, await isFailing()]).toEqual([1, false]);
    await fixture.create();
    await deliver();
    endpoint.answer(200);
    unwrap(await sendTestEvent(fixture.deps, query));
    await deliver();
    expect([endpoint.arrivals.length, await isFailing()]).toEqual([3, true]);
  });

  test("is not failing any more once it accepts an event, also within one delivery run", async () => {
    const { fixture, endpoint, deliver, query } = await makeWebhookFixture(chain);
    const bad = await fixture.create();
    await fixture.create();
    endpoint.answer((arrival, response) => {
      if (arrival.event.data.payment_id === bad) response.writeHead(500).end();
      else setTimeout(() => response.end(), 500);
    });
    await deliver();
    expect(endpoint.arrivals).toHaveLength(2);
    expect(unwrap(await findEndpoint(fixture.deps, query)).failingSince).toBeNull();
  });

  test("stays enabled when it accepts an event in between", async () => {
    const { fixture, endpoint, deliver, query } = await makeWebhookFixture(chain);
    for (const status of [500, 200, 500]) {
      endpoint.answer(status);
      await fixture.create();
      await deliver();
      fixture.clock.advance(4 * DAY);
    }
    const { status, failingSince } = unwrap(await findEndpoint(fixture.deps, query));
    expect(status).toBe("enabled");
    expect(fixture.deps.now().getTime() - (failingSince?.getTime() ?? 0)).toBeLessThan(5 * DAY);
  });
});

test("a disabled endpoint gets nothing, also no event of a transaction that began before", async () => {
  const { fixture, endpoint, deliver, deliveries, query, id } = await makeWebhookFixture(chain);
  const deps = { ...fixture.deps, validateUrl: () => undefined };
  await fixture.create();
  unwrap(await changeEndpoint(deps, { ...query, status: "disabled" }));
  await fixture.create();
  await fixture.db
    .updateTable("webhook_delivery")
    .set({ state: "pending", due_at: new Date(0) })
    .execute();
  await deliver();
  expect(endpoint.arrivals).toEqual([]);
  expect(await deliveries()).toMatchObject([{ endpoint_id: id, state: "given_up", last_outcome: "endpoint disabled" }]);
  expect(await sendTestEvent(fixture.deps, query)).toMatchObject({ ok: false, code: "invalid_state" });
});

test("an endpoint gets the notices that it asked for, and no other event, for a day after it was disabled or narrowed", async () => {
  const { fixture, endpoint, deliver, query } = await makeWebhookFixture(chain);
  const { accountId, merchantId, mode } = fixture;
  const deps = { ...fixture.deps, validateUrl: () => undefined };
  const [narrow, stranger] = [await startWebhookEndpoint(), await startWebhookEndpoint()];
  const narrowed = await registerEndpoint(fixture, narrow.url);
  const details = { name: "Second", email: "second@example.test", actor: testActor };
  const { id: second } = await createMerchant(deps, { ...details, accountId, mode });
  const ofStranger = await registerEndpoint(fixture, stranger.url, { merchantIds: [second] });
  unwrap(await changeEndpoint(deps, { ...query, status: "disabled" }));
  for (const { id: endpointId } of [narrowed, ofStranger])
    unwrap(await changeEndpoint(deps, { ...query, endpointId, eventTypes: ["payment.settled"] }));
  await deliver();
  for (const { arrivals } of [endpoint, narrow, stranger]) arrivals.splice(0);
  await fixture.create();
  const registration = { accountId, merchantId, mode, publicKey: makeApprovalKey().publicKey, actor: testActor };
  unwrap(await registerApprovalKey(deps, registration));
  await deliver();
  const types = ({ arrivals }: typeof endpoint) => arrivals.map(({ event }) => event.type);
  expect([endpoint, narrow, stranger].map(types)).toEqual([
    ["approval_key.registered"],
    ["approval_key.registered"],
    [],
  ]);
});

test("a delivery shows its request and the beginning of each response, without what looks like a secret", async () => {
  const { fixture, endpoint, deliver, query } = await makeWebhookFixture(chain);
  const key = `svc_test_${"k".repeat(32)}`;
  endpoint.answer((_arrival, response) => {
    response.writeHead(500, { "content-type": "text/plain" });
    response.end(`no database, key ${key} ${"x".repeat(100_000)}`);
  });
  const { eventId } = unwrap(await sendTestEvent(fixture.deps, query));
  await deliver();
  endpoint.answer((_arrival, response) => void response.writeHead(202).end("thanks"));
  fixture.clock.advance(5_000);
  await deliver();
  const shown = unwrap(await findDelivery(fixture.deps, { ...query, eventId }));
  expect(JSON.stringify(shown.payload)).toBe(endpoint.arrivals[0]?.body);
  expect(shown).toMatchObject({ state: "delivered", attemptsMade: 2, type: "webhook_endpoint.test" });
  const [second, first] = shown.attempts;
  expect(second).toMatchObject({ outcome: "202", responseBody: "thanks" });
  expect(first).toMatchObject({ outcome: "500", responseType: "text/plain" });
  expect(first?.responseBody).toMatch(/^no database, key svc_test_\[redacted\] x+…$/);
  expect(first?.responseBody).toHaveLength(1_000);
  expect(JSON.stringify(shown)).not.toContain(key);
});

test("deliveries are listed in pages, the newest first, by payment and by state", async () => {
  const { fixture, endpoint, deliver, query } = await makeWebhookFixture(chain);
  const paymentIds: string[] = [];
  for (let count = 0; count < 5; count += 1) {
    paymentIds.unshift(await fixture.create());
    fixture.clock.advance(1_000);
  }
  endpoint.answer((arrival, response) => {
    response.writeHead(arrival.event.data.payment_id === paymentIds[1] ? 500 : 200).end();
  });
  await deliver();
  const listed: (string | null)[] = [];
  for (let cursor: string | undefined, more = true; more; ) {
    const page = unwrap(await listDeliveries(fixture.deps, { ...query, cursor, limit: 2 }));
    listed.push(...page.items.map(({ paymentId }) => paymentId));
    cursor = page.nextCursor ?? undefined;
    more = cursor !== undefined;
  }
  expect(listed).toEqual(paymentIds);
  const list = async (filter: object) =>
    unwrap(await listDeliveries(fixture.deps, { ...query, ...filter, limit: 10 })).items.map((one) => one.paymentId);
  expect(await list({ state: "pending" })).toEqual([paymentIds[1]]);
  expect(await list({ paymentId: paymentIds[3] })).toEqual([paymentIds[3]]);
});
