import type { ServerResponse } from "node:http";
import { sql } from "kysely";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { giveUpDeliveries, listAttemptRows } from "../../../../db/queries/webhook-deliveries.ts";
import { noteSlow } from "../../../../db/queries/webhook-endpoints.ts";
import { takeDueWork } from "../../../../payments/maintenance/take-due-rows.ts";
import { changeEndpoint, createEndpoint, deleteEndpoint } from "../../../../payments/webhooks/change-endpoints.ts";
import { deliverDue } from "../../../../payments/webhooks/deliver-events.ts";
import { rotateSecret } from "../../../../payments/webhooks/endpoint-secrets.ts";
import { findEndpoint, listEndpoints } from "../../../../payments/webhooks/endpoint-views.ts";
import { listDeliveries } from "../../../../payments/webhooks/list-deliveries.ts";
import { replayEvent, replayEvents } from "../../../../payments/webhooks/replay-events.ts";
import { createSafeFetch, validateUrl } from "../../../../runtime/safe-fetch.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { insertPaymentRow, insertPaymentRows } from "../../../support/insert-rows.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { createDatabase } from "../../../support/test-database.ts";
import { waitFor } from "../../../support/wait-for.ts";
import {
  deliverAll,
  makeWebhookFixture,
  type ReceivedWebhook,
  registerEndpoint,
  startWebhookEndpoint,
  verifyReceivedWebhook,
} from "../../../support/webhook-endpoint.ts";

const chain = await startChain();
const databaseUrl = await createDatabase();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const schedule = [5_000, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];

/** Verifies a signature made under an advanced clock, which the library would refuse as stale. */
function isSignedWith(secret: string, { headers, body }: ReceivedWebhook): boolean {
  const at = new Date(Number(headers["webhook-timestamp"]) * 1000);
  const right = new Webhook(secret).sign(String(headers["webhook-id"]), at, body);
  return String(headers["webhook-signature"]).split(" ").includes(right);
}

/** Changes the URL of an endpoint. */
async function move({ deps }: MerchantFixture, endpointId: string, url: string): Promise<void> {
  unwrap(await changeEndpoint({ ...deps, validateUrl: () => undefined }, { endpointId, actor: testActor, url }));
}

describe("failed deliveries", () => {
  test("a failed event is retried on the published schedule with the same bytes and then given up", async () => {
    const { fixture, endpoint, deliver, deliveries, secret } = await makeWebhookFixture(chain);
    endpoint.answer(500);
    await fixture.create();
    // A slow machine takes longer than a short wait for the steps between two attempts.
    fixture.clock.stop();
    await deliver();
    for (const [index, wait] of schedule.entries()) {
      fixture.clock.advance(wait - 1);
      expect(await deliver(), `too early for attempt ${index + 2}`).toBe(0);
      fixture.clock.advance(1);
      expect(await deliver()).toBe(1);
      expect(endpoint.arrivals).toHaveLength(index + 2);
    }
    expect(await deliveries()).toMatchObject([
      { state: "given_up", attempts_made: 8, last_outcome: "500", due_at: null },
    ]);
    fixture.clock.advance(100 * HOUR);
    expect(await deliver()).toBe(0);

    const { arrivals } = endpoint;
    expect(new Set(arrivals.map(({ body }) => body)).size).toBe(1);
    expect(new Set(arrivals.map(({ headers }) => headers["webhook-id"]))).toEqual(new Set([arrivals[0]?.event.id]));
    const times = arrivals.map(({ headers }) => Number(headers["svix-timestamp"]));
    for (const [index, wait] of schedule.entries())
      expect((times[index + 1] ?? 0) - (times[index] ?? 0)).toBeGreaterThanOrEqual(wait / 1000 - 1);
    expect(arrivals.every((arrival) => isSignedWith(secret, arrival))).toBe(true);
    for (const { headers } of arrivals)
      for (const part of ["id", "timestamp", "signature"])
        expect(headers[`svix-${part}`]).toBe(headers[`webhook-${part}`]);
    expect(fixture.lines.join("")).toContain("webhook event given up");
    expect(fixture.lines.join("")).not.toContain("s3cret");
  });

  test("an event delivered on a retry is not sent again", async () => {
    const { fixture, endpoint, deliver, deliveries } = await makeWebhookFixture(chain);
    endpoint.answer(503);
    await fixture.create();
    await deliver();
    endpoint.answer(204);
    fixture.clock.advance(5_000);
    await deliver();
    fixture.clock.advance(100 * HOUR);
    await deliver();
    expect(endpoint.arrivals).toHaveLength(2);
    expect(await deliveries()).toMatchObject([{ state: "delivered", attempts_made: 2, last_outcome: "204" }]);
  });

  test("a deliverer does not follow a redirect", async () => {
    const { fixture, endpoint, deliver, deliveries } = await makeWebhookFixture(chain);
    const other = await startWebhookEndpoint();
    endpoint.answer((_arrival, response) => void response.writeHead(307, { location: other.url }).end());
    await fixture.create();
    await deliver();
    expect(other.arrivals).toEqual([]);
    expect(await deliveries()).toMatchObject([{ state: "pending", attempts_made: 1, last_outcome: "307" }]);
  });

  test("an unreachable endpoint and a timeout are recorded as such", async () => {
    const { fixture, endpoint, deliveries, id } = await makeWebhookFixture(chain);
    endpoint.answer(() => undefined);
    await fixture.create();
    const safeFetch: typeof fixture.deps.safeFetch = (request) =>
      fixture.deps.safeFetch({ ...request, timeoutMs: 300 });
    const signal = new AbortController().signal;
    await deliverDue({ ...fixture.deps, safeFetch }, { endpointId: id, signal });
    expect(await deliveries()).toMatchObject([{ attempts_made: 1, last_outcome: "timeout" }]);
    await move(fixture, id, "http://127.0.0.1:1/");
    fixture.clock.advance(5_000);
    await deliverDue(fixture.deps, { endpointId: id, signal });
    expect(await deliveries()).toMatchObject([{ attempts_made: 2, last_outcome: "unreachable" }]);
  });

  test("a deliverer does not connect to a private address unless that is allowed", async () => {
    const { fixture, endpoint, deliveries, id } = await makeWebhookFixture(chain);
    await move(fixture, id, endpoint.url.replace("http:", "https:"));
    await fixture.create();
    const guarded = { ...fixture.deps, safeFetch: createSafeFetch({ allowPrivate: false }) };
    await deliverDue(guarded, { endpointId: id, signal: new AbortController().signal });
    expect(endpoint.arrivals).toEqual([]);
    expect(await deliveries()).toMatchObject([{ state: "pending", attempts_made: 1, last_outcome: "refused address" }]);
  });
});

test("the response status alone decides a delivery: an endless body neither fails nor delays it", async () => {
  const { fixture, endpoint, deliver, deliveries } = await makeWebhookFixture(chain);
  endpoint.answer((_arrival, response) => {
    response.writeHead(200, { "content-encoding": "gzip" });
    const more = setInterval(() => response.write(Buffer.alloc(10_000)), 5);
    response.on("close", () => clearInterval(more));
  });
  const startedAt = Date.now();
  await fixture.create();
  await deliver();
  expect(Date.now() - startedAt, "the time limit of a request is 15 s").toBeLessThan(12_000);
  expect(await deliveries()).toMatchObject([{ state: "delivered", last_outcome: "200" }]);
});

test("a hanging event delays neither the other events of its slow endpoint nor those of other accounts", async () => {
  const one = await makeWebhookFixture(chain);
  const other = await makeWebhookFixture(chain, { databaseUrl: one.fixture.databaseUrl });
  // An endpoint that is not known as slow gets no more events in this run once a request hangs for three seconds.
  await noteSlow(one.fixture.db, one.id, new Date(Date.now() + HOUR));
  const stuck = await one.fixture.create();
  const hung = Promise.withResolvers<ServerResponse>();
  one.endpoint.answer((arrival, response) => {
    if (arrival.event.data.payment_id === stuck) hung.resolve(response);
    else response.end();
  });
  const safeFetch: typeof one.fixture.deps.safeFetch = (request) =>
    one.fixture.deps.safeFetch({ ...request, timeoutMs: 50_000 });
  const signal = new AbortController().signal;
  const hanging = deliverDue({ ...one.fixture.deps, safeFetch }, { endpointId: one.id, signal });
  // More events than are sent in parallel, created while the first one hangs.
  await insertPaymentRows(one.fixture.db, one.fixture, { count: 100, mode: "live" });
  await other.fixture.create();
  await deliverAll(other.fixture);
  expect(other.endpoint.arrivals).toHaveLength(1);
  await waitFor(() => one.endpoint.arrivals.length === 101, { within: 30_000, what: "the other events arrive" });
  (await hung.promise).writeHead(503).end();
  await hanging;
  const rows = await one.deliveries();
  const state = (id: string) => rows.find((row) => row.payment_id === id)?.last_outcome;
  expect(state(stuck)).toBe("503");
  expect(rows.filter((row) => row.last_outcome === "200")).toHaveLength(101);
});

test("several workers that serve one endpoint send each event once", async () => {
  const { fixture, endpoint, id } = await makeWebhookFixture(chain);
  for (let count = 0; count < 40; count += 1) await fixture.create();
  const signal = new AbortController().signal;
  await Promise.all(Array.from({ length: 8 }, () => deliverDue(fixture.deps, { endpointId: id, signal })));
  expect(endpoint.arrivals).toHaveLength(40);
  expect(new Set(endpoint.arrivals.map(({ event }) => event.id)).size).toBe(40);
});

test("a worker that lost its lease does not count an attempt that another worker has made", async () => {
  const { fixture, endpoint, id, deliveries } = await makeWebhookFixture(chain);
  const signal = new AbortController().signal;
  const held = Promise.withResolvers<ServerResponse>();
  endpoint.answer((_arrival, response) => held.resolve(response));
  await fixture.create();
  const late = deliverDue(fixture.deps, { endpointId: id, signal });
  const response = await held.promise;
  // Simulates an expired lease.
  await fixture.db
    .updateTable("webhook_endpoint")
    .set({ lease_until: new Date(0) })
    .where("id", "=", id)
    .execute();
  endpoint.answer(502);
  await deliverDue(fixture.deps, { endpointId: id, signal });
  response.writeHead(500).end();
  await late;
  expect(endpoint.arrivals).toHaveLength(2);
  expect(await deliveries()).toMatchObject([{ attempts_made: 1, last_outcome: "502" }]);
});

test("the sweep enqueues an endpoint once, again when no worker took the job, and only the second time counts as lost", async () => {
  const { fixture, id } = await makeWebhookFixture(chain);
  const sweep = () => takeDueWork(fixture.deps, "endpoints");
  expect(await sweep()).toEqual([]);
  await fixture.create();
  // On a slow machine, the time after which the sweep enqueues it again would pass between two sweeps.
  const goOn = fixture.clock.stop();
  expect(await sweep()).toEqual([{ id, retry: 1, lost: false, slow: false }]);
  expect(await sweep()).toEqual([]);
  fixture.clock.advance(5_000);
  expect(await sweep()).toEqual([{ id, retry: 2, lost: true, slow: false }]);
  goOn();
  await deliverDue(fixture.deps, { endpointId: id, signal: new AbortController().signal });
  await fixture.create();
  expect(await sweep()).toEqual([{ id, retry: 3, lost: false, slow: false }]);
});

describe("event recipients", () => {
  test("an event is sent only to its payment's account in its payment's mode", async () => {
    const live = await makeWebhookFixture(chain);
    const stranger = await makeWebhookFixture(chain, { databaseUrl: live.fixture.databaseUrl });
    const testEndpoint = await startWebhookEndpoint();
    const ofTest = { ...live.fixture, mode: "test" as const };
    await registerEndpoint(ofTest, testEndpoint.url);
    const id = await live.fixture.create();
    const testId = await insertPaymentRow(live.fixture.db, live.fixture, { mode: "test" });
    await deliverAll(live.fixture);
    const received = (of: { arrivals: ReceivedWebhook[] }) => of.arrivals.map(({ event }) => event.data.payment_id);
    expect(received(live.endpoint)).toEqual([id]);
    expect(received(testEndpoint)).toEqual([testId]);
    expect(stranger.endpoint.arrivals).toEqual([]);
  });

  test("an account without an endpoint stores no deliveries", async () => {
    const fixture = await makeMerchantFixture(chain);
    await fixture.create();
    expect(await fixture.db.selectFrom("webhook_delivery").select("event_id").execute()).toEqual([]);
  });

  test("a rolled back payment sends no event", async () => {
    const { fixture, deliveries } = await makeWebhookFixture(chain);
    const rolledBack = fixture.db.transaction().execute(async (db) => {
      await fixture.create();
      await db.updateTable("payment").set({ state: "processing" }).execute();
      throw new Error("rolled back on purpose");
    });
    await expect(rolledBack).rejects.toThrow("rolled back on purpose");
    expect((await deliveries()).map(({ type }) => type)).toEqual(["payment.created"]);
  });
});

describe("webhook secrets", () => {
  test("a secret is stored encrypted and differs for every endpoint", async () => {
    const [one, other] = [await makeWebhookFixture(chain), await makeWebhookFixture(chain)];
    expect(one.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(other.secret).not.toBe(one.secret);
    const row = await one.fixture.db.selectFrom("webhook_endpoint").selectAll().executeTakeFirstOrThrow();
    expect(row.secret.toString("latin1")).not.toContain(one.secret);
    expect(row.secret.includes(Buffer.from(one.secret.slice(6), "base64"))).toBe(false);
  });

  test("a rotated secret signs beside the new one for one day", async () => {
    const { fixture, endpoint, query, secret, deliver } = await makeWebhookFixture(chain);
    const next = unwrap(await rotateSecret(fixture.deps, query)).secret;
    await fixture.create();
    await deliver();
    const [both] = endpoint.arrivals as [ReceivedWebhook];
    expect(String(both.headers["svix-signature"]).split(" ")).toHaveLength(2);
    verifyReceivedWebhook(secret, both);
    verifyReceivedWebhook(next, both);
    fixture.clock.advance(24 * HOUR);
    await fixture.create();
    await deliver();
    const late = endpoint.arrivals[1] as ReceivedWebhook;
    expect([isSignedWith(secret, late), isSignedWith(next, late)]).toEqual([false, true]);
    expect(() => verifyReceivedWebhook(`whsec_${Buffer.alloc(32).toString("base64")}`, both)).toThrow(
      /No matching signature/,
    );
  });

  test("events are delivered with the current secret while the previous one cannot be decrypted", async () => {
    const { fixture, endpoint, query, deliver } = await makeWebhookFixture(chain);
    const next = unwrap(await rotateSecret(fixture.deps, query)).secret;
    await fixture.db.updateTable("webhook_endpoint").set({ previous_key_id: "removed" }).execute();
    await fixture.create();
    await deliver();
    verifyReceivedWebhook(next, endpoint.arrivals[0] as ReceivedWebhook);
    expect(fixture.lines.join("")).toContain("previous webhook secret cannot be decrypted");
  });

  test("a secret rotated with now stops signing at once, and so does the one before it", async () => {
    const { fixture, endpoint, query, secret: first, deliver } = await makeWebhookFixture(chain);
    const second = unwrap(await rotateSecret(fixture.deps, query)).secret;
    const third = unwrap(await rotateSecret(fixture.deps, { ...query, now: true })).secret;
    await fixture.create();
    await deliver();
    const [arrival] = endpoint.arrivals as [ReceivedWebhook];
    expect([first, second, third].map((secret) => isSignedWith(secret, arrival))).toEqual([false, false, true]);
    expect(unwrap(await findEndpoint(fixture.deps, query)).previousUntil).toBeNull();
  });
});

describe("webhook endpoints", () => {
  const strict = { validateUrl: (url: string) => validateUrl({ allowPrivate: false }, url) };

  test.each([
    ["http://shop.example.test/hooks", "expected an https URL"],
    ["https://127.0.0.1/hooks", "is not on the public internet"],
    ["https://[::ffff:10.0.0.1]/", "is not on the public internet"],
    ["https://0x7f.1/", "is not on the public internet"],
    ["https://me:secret@shop.example.test/", "holds a user name or password"],
    ["shop.example.test", "expected a URL"],
  ])("an endpoint at %s is refused", async (url, reason) => {
    const fixture = await makeMerchantFixture(chain, { databaseUrl });
    const owner = { accountId: fixture.accountId, mode: "live" as const };
    const deps = { ...fixture.deps, ...strict };
    const refused = { ok: false, code: "params_validation", message: `url: ${reason}` };
    expect(await createEndpoint(deps, { ...owner, actor: testActor, url })).toEqual(refused);
    expect(await listEndpoints(fixture.deps, owner)).toEqual([]);
    const { id: endpointId } = await registerEndpoint(fixture, `https://shop.example.test/${fixture.accountId}`);
    expect(await changeEndpoint(deps, { endpointId, actor: testActor, url })).toEqual(refused);
  });

  test("an endpoint of an unknown account is refused", async () => {
    const fixture = await makeMerchantFixture(chain, { databaseUrl });
    const args = { accountId: "acct_0", mode: "live" as const, url: "https://shop.example.test/" };
    expect(await createEndpoint({ ...fixture.deps, ...strict }, { ...args, actor: testActor })).toMatchObject({
      ok: false,
      code: "params_validation",
    });
  });

  test("a repeated or concurrent registration of a URL makes one endpoint", async () => {
    const fixture = await makeMerchantFixture(chain, { databaseUrl });
    const args = { accountId: fixture.accountId, mode: "live" as const, url: "https://shop.example.test/" };
    const create = () => createEndpoint({ ...fixture.deps, ...strict }, { ...args, actor: testActor });
    const made = await Promise.all([create(), create(), create()]);
    expect(made.filter(({ ok }) => ok)).toHaveLength(1);
    const taken = { ok: false, code: "invalid_state", message: expect.stringContaining("url:") };
    for (const one of made.filter(({ ok }) => !ok)) expect(one).toMatchObject(taken);
    expect(await listEndpoints(fixture.deps, args)).toHaveLength(1);
  });

  test("an account has at most 16 endpoints in a mode", async () => {
    const fixture = await makeMerchantFixture(chain, { databaseUrl });
    for (let count = 0; count < 16; count += 1) await registerEndpoint(fixture, `https://shop.example.test/${count}`);
    const args = { accountId: fixture.accountId, mode: "live" as const, url: "https://shop.example.test/16" };
    expect(await createEndpoint({ ...fixture.deps, ...strict }, { ...args, actor: testActor })).toMatchObject({
      ok: false,
      code: "invalid_state",
    });
    await registerEndpoint({ ...fixture, mode: "test" }, args.url);
  });

  test("an account registers at most 100 endpoints of a mode in a day, deleted ones included", async () => {
    const fixture = await makeMerchantFixture(chain, { databaseUrl });
    const { deps, accountId } = fixture;
    const owner = { accountId, mode: "live" as const, actor: testActor };
    const url = "https://shop.example.test/";
    for (let count = 0; count < 100; count += 1) {
      const { id: endpointId } = await registerEndpoint(fixture, url);
      unwrap(await deleteEndpoint(deps, { endpointId, actor: testActor }));
    }
    const register = () => createEndpoint({ ...deps, ...strict }, { ...owner, url });
    expect(await register()).toMatchObject({ ok: false, code: "rate_limited", retryAfterSeconds: 3_600 });
    await registerEndpoint({ ...fixture, mode: "test" }, url);
    fixture.clock.advance(24 * HOUR);
    expect(await register()).toMatchObject({ ok: true });
  });

  test("an endpoint with a new URL receives its undelivered events there", async () => {
    const { fixture, endpoint, deliver, id, query } = await makeWebhookFixture(chain);
    await fixture.create();
    const next = await startWebhookEndpoint();
    await move(fixture, id, next.url);
    await deliver();
    expect([endpoint.arrivals.length, next.arrivals.length]).toEqual([0, 1]);
    expect(unwrap(await findEndpoint(fixture.deps, query))).toMatchObject({ id, url: next.url, mode: "live" });
  });

  test("a deleted endpoint receives nothing more, and a new endpoint receives only later events", async () => {
    const { fixture, endpoint, deliver, deliveries, query, id } = await makeWebhookFixture(chain);
    endpoint.answer(500);
    await fixture.create();
    await deliver();
    await fixture.create();
    expect(unwrap(await deleteEndpoint(fixture.deps, query))).toEqual({ id });
    await deliver();
    expect((await deliveries()).map((row) => row.last_outcome)).toEqual(["endpoint deleted", "endpoint deleted"]);
    fixture.clock.advance(HOUR);
    expect(await deliver()).toBe(0);
    expect(endpoint.arrivals).toHaveLength(1);
    for (const refused of [
      await deleteEndpoint(fixture.deps, query),
      await rotateSecret(fixture.deps, query),
      await replayEvents(fixture.deps, { ...query, which: { state: "given_up" } }),
      await listDeliveries(fixture.deps, { ...query, limit: 10 }),
    ])
      expect(refused).toMatchObject({ ok: false, code: "webhook_endpoint_not_found" });

    endpoint.answer(200);
    const secondEndpoint = await registerEndpoint(fixture, endpoint.url);
    expect(secondEndpoint.id).not.toBe(id);
    await fixture.create();
    await deliver();
    expect(endpoint.arrivals).toHaveLength(2);
  });

  test("an endpoint deleted during a payment's transaction does not receive that payment's event", async () => {
    const { fixture, endpoint, deliver, deliveries, id } = await makeWebhookFixture(chain);
    await fixture.create();
    // Simulates a payment whose transaction read the endpoint just before its deletion.
    await fixture.db.updateTable("webhook_endpoint").set({ deleted_at: new Date() }).where("id", "=", id).execute();
    await deliver();
    expect(endpoint.arrivals).toEqual([]);
    expect(await deliveries()).toMatchObject([{ state: "given_up", last_outcome: "endpoint deleted" }]);
  });
});

describe("an endpoint with a million pending events", () => {
  /** Adds pending events of an endpoint in one statement, which are due in an hour. */
  const addPending = ({ db, deps }: MerchantFixture, endpointId: string, count: number) =>
    sql`with added as (
        insert into webhook_event (id, account_id, mode, type, endpoint_id, detail, at)
        select 'evt_many' || n, account_id, mode, 'webhook_endpoint.updated', id, '{}', created_at
        from webhook_endpoint, generate_series(1, ${sql.lit(count)}) n where id = ${endpointId} returning id
      )
      insert into webhook_delivery (event_id, endpoint_id, priority, at, due_at)
      select id, ${endpointId}, 1, now(), ${new Date(deps.now().getTime() + HOUR)} from added`.execute(db);
  const countPending = async ({ db }: MerchantFixture) =>
    (await db.selectFrom("webhook_delivery").select("event_id").where("state", "=", "pending").execute()).length;

  test.each(["disabled", "deleted"])("is %s at once, and the worker gives its events up in parts", async (end) => {
    const { fixture, endpoint, deliver, deliveries, query, id } = await makeWebhookFixture(chain);
    await addPending(fixture, id, 10_001);
    const deps = { ...fixture.deps, validateUrl: () => undefined };
    unwrap(
      end === "deleted"
        ? await deleteEndpoint(deps, query)
        : await changeEndpoint(deps, { ...query, status: "disabled" }),
    );
    const run = () => deliverDue(fixture.deps, { endpointId: id, signal: new AbortController().signal });
    expect([await countPending(fixture), await run(), await countPending(fixture)]).toEqual([10_001, "more", 5_001]);
    fixture.clock.advance(10_000);
    // The sweep enqueues an endpoint whose worker has died, although none of its events is due.
    expect([await deliver(), await countPending(fixture)]).toEqual([1, 1]);
    expect([await run(), await countPending(fixture)]).toEqual(["done", 0]);
    expect(await deliver()).toBe(0);
    expect(endpoint.arrivals).toEqual([]);
    expect(new Set((await deliveries()).map((row) => row.last_outcome))).toEqual(new Set([`endpoint ${end}`]));
  });

  test("gets no more of them from a worker that is delivering when it is disabled", async () => {
    const { fixture, endpoint, deliver, query, deliveries } = await makeWebhookFixture(chain);
    for (let count = 0; count < 101; count += 1) await fixture.create();
    const deps = { ...fixture.deps, validateUrl: () => undefined };
    let ending: ReturnType<typeof changeEndpoint> | undefined;
    endpoint.answer(async (_arrival, response) => {
      ending ??= changeEndpoint(deps, { ...query, status: "disabled" });
      await ending;
      response.end();
    });
    await deliver();
    await deliver();
    expect(endpoint.arrivals).toHaveLength(100);
    expect((await deliveries()).filter((row) => row.last_outcome === "endpoint disabled")).toHaveLength(1);
  });

  test("keeps its events once it is enabled again, also if a worker still gives them up", async () => {
    const { fixture, endpoint, query, id } = await makeWebhookFixture(chain);
    await fixture.create();
    const deps = { ...fixture.deps, validateUrl: () => undefined };
    unwrap(await changeEndpoint(deps, { ...query, status: "disabled" }));
    unwrap(await changeEndpoint(deps, { ...query, status: "enabled" }));
    expect(await giveUpDeliveries(fixture.db, id, 10)).toBe(0);
    await deliverAll(fixture);
    expect(endpoint.arrivals).toHaveLength(1);
  });
});

describe("replays", () => {
  test("a replay sends one event again with the same id and restarts its schedule", async () => {
    const { fixture, endpoint, deliver, query } = await makeWebhookFixture(chain);
    await fixture.create();
    await fixture.create();
    await deliver();
    const [first] = endpoint.arrivals as [ReceivedWebhook];
    const eventId = first.event.id;
    expect(await replayEvent(fixture.deps, { ...query, eventId })).toEqual({ ok: true, value: { eventId } });
    endpoint.answer(500);
    await deliver();
    expect(endpoint.arrivals).toHaveLength(3);
    expect(endpoint.arrivals[2]?.body).toBe(first.body);
    const { items } = unwrap(await listDeliveries(fixture.deps, { ...query, state: "pending", limit: 10 }));
    expect(items).toMatchObject([{ eventId, attemptsMade: 1, lastOutcome: "500", deliveredAt: null }]);
  });

  test("of an event that is replayed often, the newest 20 requests are kept", async () => {
    const { fixture, endpoint, deliver, query, id } = await makeWebhookFixture(chain);
    await fixture.create();
    await fixture.create();
    await deliver();
    const [first, second] = endpoint.arrivals.map(({ event }) => event.id) as [string, string];
    const attempts = (eventId: string) => listAttemptRows(fixture.db, { eventId, endpointId: id, limit: 100 });
    const outcomes: string[] = [];
    for (let count = 0; count < 22; count += 1) {
      unwrap(await replayEvent(fixture.deps, { ...query, eventId: first }));
      endpoint.answer(200 + count);
      outcomes.unshift(String(200 + count));
      await deliver();
    }
    expect((await attempts(first)).map(({ outcome }) => outcome)).toEqual(outcomes.slice(0, 20));
    expect(await attempts(second)).toHaveLength(1);
  });

  test("a replay of a period or of given-up events sends exactly those", async () => {
    const { fixture, endpoint, deliver, query } = await makeWebhookFixture(chain);
    const early = await fixture.create();
    await deliver();
    fixture.clock.advance(HOUR);
    const since = fixture.deps.now();
    const late = await fixture.create();
    await deliver();
    const until = new Date(since.getTime() + MINUTE);
    const one = { ok: true, value: { count: 1, nextCursor: null } };
    expect(await replayEvents(fixture.deps, { ...query, which: { since, until } })).toEqual(one);
    await deliver();
    expect([endpoint.of(early).length, endpoint.of(late).length]).toEqual([1, 2]);

    const events = await fixture.db.selectFrom("webhook_event").select("id").where("payment_id", "=", early).execute();
    await fixture.db
      .updateTable("webhook_delivery")
      .set({ state: "given_up" })
      .where("event_id", "=", events[0]?.id ?? "")
      .execute();
    expect(await replayEvents(fixture.deps, { ...query, which: { state: "given_up" } })).toEqual(one);
    await deliver();
    expect([endpoint.of(early).length, endpoint.of(late).length]).toEqual([2, 2]);
  });

  test("a replay reaches neither endpoints nor events of another account or mode", async () => {
    const one = await makeWebhookFixture(chain);
    const other = await makeWebhookFixture(chain, { databaseUrl: one.fixture.databaseUrl });
    await one.fixture.create();
    await one.deliver();
    const eventId = one.endpoint.arrivals[0]?.event.id ?? "";
    const missing = { ok: false, code: "webhook_endpoint_not_found" };
    for (const owner of [other.owner, { ...one.owner, mode: "test" as const }])
      expect(await replayEvent(one.fixture.deps, { ...one.query, owner, eventId })).toMatchObject(missing);
    expect(await replayEvent(other.fixture.deps, { ...other.query, eventId })).toMatchObject({
      ok: false,
      code: "event_not_found",
    });
    const all = { since: new Date(0), until: new Date(Date.now() + HOUR) };
    unwrap(await replayEvents(other.fixture.deps, { ...other.query, which: all }));
    await deliverAll(one.fixture);
    expect(one.endpoint.arrivals).toHaveLength(1);
    expect(other.endpoint.types().filter((type) => type.startsWith("payment."))).toEqual([]);
  });
});
