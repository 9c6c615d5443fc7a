import type { ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { takeDueWork } from "../../../../payments/maintenance/take-due-rows.ts";
import { deliverDue } from "../../../../payments/webhooks/deliver-events.ts";
import { listDeliveries, replayEvents } from "../../../../payments/webhooks/replay-events.ts";
import {
  deleteEndpoint,
  findEndpoint,
  rotateSecret,
  setEndpoint,
} from "../../../../payments/webhooks/webhook-endpoints.ts";
import { createSafeFetch, validateUrl } from "../../../../runtime/safe-fetch.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { insertPaymentRow } from "../../../support/insert-rows.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { createDatabase } from "../../../support/test-database.ts";
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
/** Time that the steps of a test may take on a slow machine. */
const SLACK_MS = 2_000;

/** Verifies a signature made under an advanced clock, which the library would refuse as stale. */
function isSignedWith(secret: string, { headers, body }: ReceivedWebhook): boolean {
  const at = new Date(Number(headers["webhook-timestamp"]) * 1000);
  const right = new Webhook(secret).sign(String(headers["webhook-id"]), at, body);
  return String(headers["webhook-signature"]).split(" ").includes(right);
}

describe("failed deliveries", () => {
  test("a failed event is retried on the published schedule with the same bytes and then given up", async () => {
    const { fixture, endpoint, deliver, deliveries, secret } = await makeWebhookFixture(chain);
    endpoint.answer(500);
    await fixture.create();
    await deliver();
    for (const [index, wait] of schedule.entries()) {
      fixture.clock.advance(wait - SLACK_MS);
      expect(await deliver(), `too early for attempt ${index + 2}`).toBe(0);
      fixture.clock.advance(SLACK_MS);
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
    await registerEndpoint(fixture, "http://127.0.0.1:1/");
    fixture.clock.advance(5_000);
    await deliverDue(fixture.deps, { endpointId: id, signal });
    expect(await deliveries()).toMatchObject([{ attempts_made: 2, last_outcome: "unreachable" }]);
  });

  test("a deliverer does not connect to a private address unless that is allowed", async () => {
    const { fixture, endpoint, deliveries, id } = await makeWebhookFixture(chain);
    await registerEndpoint(fixture, endpoint.url.replace("http:", "https:"));
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
  expect(Date.now() - startedAt).toBeLessThan(5_000);
  expect(await deliveries()).toMatchObject([{ state: "delivered", last_outcome: "200" }]);
});

test("a hanging event delays neither the other events of its endpoint nor those of other accounts", async () => {
  const one = await makeWebhookFixture(chain);
  const other = await makeWebhookFixture(chain, { databaseUrl: one.fixture.databaseUrl });
  const stuck = await one.fixture.create();
  one.endpoint.answer((arrival, response) => {
    if (arrival.event.data.payment_id !== stuck) response.end();
  });
  const safeFetch: typeof one.fixture.deps.safeFetch = (request) =>
    one.fixture.deps.safeFetch({ ...request, timeoutMs: 3_000 });
  const signal = new AbortController().signal;
  const hanging = deliverDue({ ...one.fixture.deps, safeFetch }, { endpointId: one.id, signal });
  // More events than are sent in parallel, created while the first one hangs.
  for (let count = 0; count < 100; count += 1) await one.fixture.create();
  await other.fixture.create();
  await deliverAll(other.fixture);
  expect(other.endpoint.arrivals).toHaveLength(1);
  await hanging;
  expect(one.endpoint.arrivals).toHaveLength(101);
  const rows = await one.deliveries();
  const state = (id: string) => rows.find((row) => row.payment_id === id)?.last_outcome;
  expect(state(stuck)).toBe("timeout");
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
  const sweep = async () => (await takeDueWork(fixture.deps)).endpoints;
  expect(await sweep()).toEqual([]);
  await fixture.create();
  expect(await sweep()).toEqual([{ id, retry: 1, lost: false }]);
  expect(await sweep()).toEqual([]);
  fixture.clock.advance(5_000);
  expect(await sweep()).toEqual([{ id, retry: 2, lost: true }]);
  await deliverDue(fixture.deps, { endpointId: id, signal: new AbortController().signal });
  await fixture.create();
  expect(await sweep()).toEqual([{ id, retry: 3, lost: false }]);
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
    expect(await fixture.db.selectFrom("webhook_delivery").select("id").execute()).toEqual([]);
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
    const { fixture, endpoint, owner, secret, deliver } = await makeWebhookFixture(chain);
    const next = unwrap(await rotateSecret(fixture.deps, { ...owner, actor: testActor })).secret;
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

  test("a secret rotated with now stops signing at once, and so does the one before it", async () => {
    const { fixture, endpoint, owner, secret: first, deliver } = await makeWebhookFixture(chain);
    const second = unwrap(await rotateSecret(fixture.deps, { ...owner, actor: testActor })).secret;
    const third = unwrap(await rotateSecret(fixture.deps, { ...owner, actor: testActor, now: true })).secret;
    await fixture.create();
    await deliver();
    const [arrival] = endpoint.arrivals as [ReceivedWebhook];
    expect([first, second, third].map((secret) => isSignedWith(secret, arrival))).toEqual([false, false, true]);
    expect(unwrap(await findEndpoint(fixture.deps, owner)).previousUntil).toBeNull();
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
    const set = await setEndpoint(
      { ...fixture.deps, ...strict },
      { actor: testActor, accountId: fixture.accountId, mode: "live", url },
    );
    expect(set).toEqual({ ok: false, code: "params_validation", message: `url: ${reason}` });
    expect(await findEndpoint(fixture.deps, { accountId: fixture.accountId, mode: "live" })).toMatchObject({
      ok: false,
    });
  });

  test("an endpoint of an unknown account is refused", async () => {
    const fixture = await makeMerchantFixture(chain, { databaseUrl });
    const args = { accountId: "acct_0", mode: "live" as const, url: "https://shop.example.test/" };
    expect(await setEndpoint({ ...fixture.deps, ...strict }, { ...args, actor: testActor })).toMatchObject({
      ok: false,
      code: "params_validation",
    });
  });

  test("concurrent registrations make one endpoint per account and mode", async () => {
    const fixture = await makeMerchantFixture(chain, { databaseUrl });
    const made = await Promise.all(
      Array.from({ length: 6 }, () => registerEndpoint(fixture, "https://shop.example.test/")),
    );
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect(new Set(made.map(({ secret }) => secret)).size).toBe(6);
  });

  test("an endpoint with a new URL receives its undelivered events there", async () => {
    const { fixture, endpoint, deliver, id, owner } = await makeWebhookFixture(chain);
    await fixture.create();
    const next = await startWebhookEndpoint();
    expect((await registerEndpoint(fixture, next.url)).id).toBe(id);
    await deliver();
    expect([endpoint.arrivals.length, next.arrivals.length]).toEqual([0, 1]);
    expect(unwrap(await findEndpoint(fixture.deps, owner))).toMatchObject({ id, url: next.url, mode: "live" });
  });

  test("a deleted endpoint receives nothing more, and a new endpoint receives only later events", async () => {
    const { fixture, endpoint, deliver, deliveries, owner, id } = await makeWebhookFixture(chain);
    endpoint.answer(500);
    await fixture.create();
    await deliver();
    await fixture.create();
    expect(unwrap(await deleteEndpoint(fixture.deps, { ...owner, actor: testActor }))).toEqual({ id });
    fixture.clock.advance(HOUR);
    expect(await deliver()).toBe(0);
    expect(endpoint.arrivals).toHaveLength(1);
    expect((await deliveries()).map((row) => row.last_outcome)).toEqual(["endpoint deleted", "endpoint deleted"]);
    for (const refused of [
      await deleteEndpoint(fixture.deps, { ...owner, actor: testActor }),
      await rotateSecret(fixture.deps, { ...owner, actor: testActor }),
      await replayEvents(fixture.deps, { actor: testActor, ...owner, state: "given_up" }),
      await listDeliveries(fixture.deps, { ...owner, limit: 10 }),
    ])
      expect(refused).toMatchObject({ ok: false, code: "invalid_params" });

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

describe("replays", () => {
  test("a replay sends one event again with the same id and restarts its schedule", async () => {
    const { fixture, endpoint, deliver, owner } = await makeWebhookFixture(chain);
    await fixture.create();
    await fixture.create();
    await deliver();
    const [first] = endpoint.arrivals as [ReceivedWebhook];
    expect(await replayEvents(fixture.deps, { actor: testActor, ...owner, eventId: first.event.id })).toEqual({
      ok: true,
      value: { count: 1 },
    });
    endpoint.answer(500);
    await deliver();
    expect(endpoint.arrivals).toHaveLength(3);
    expect(endpoint.arrivals[2]?.body).toBe(first.body);
    const [row] = unwrap(await listDeliveries(fixture.deps, { ...owner, state: "pending", limit: 10 }));
    expect(row).toMatchObject({ eventId: first.event.id, attemptsMade: 1, lastOutcome: "500", deliveredAt: null });
  });

  test("a replay of a period or of given-up events sends exactly those", async () => {
    const { fixture, endpoint, deliver, owner } = await makeWebhookFixture(chain);
    const early = await fixture.create();
    await deliver();
    fixture.clock.advance(HOUR);
    const since = fixture.deps.now();
    const late = await fixture.create();
    await deliver();
    const until = new Date(since.getTime() + MINUTE);
    expect(await replayEvents(fixture.deps, { actor: testActor, ...owner, since, until })).toEqual({
      ok: true,
      value: { count: 1 },
    });
    await deliver();
    expect([endpoint.of(early).length, endpoint.of(late).length]).toEqual([1, 2]);

    await fixture.db
      .updateTable("webhook_delivery")
      .set({ state: "given_up" })
      .where("payment_id", "=", early)
      .execute();
    expect(await replayEvents(fixture.deps, { actor: testActor, ...owner, state: "given_up" })).toEqual({
      ok: true,
      value: { count: 1 },
    });
    await deliver();
    expect([endpoint.of(early).length, endpoint.of(late).length]).toEqual([2, 2]);
  });

  test("a replay does not reach events of another account or mode", async () => {
    const one = await makeWebhookFixture(chain);
    const other = await makeWebhookFixture(chain, { databaseUrl: one.fixture.databaseUrl });
    await one.fixture.create();
    await one.deliver();
    const eventId = one.endpoint.arrivals[0]?.event.id ?? "";
    const refused = { ok: false, code: "invalid_params" };
    expect(await replayEvents(other.fixture.deps, { actor: testActor, ...other.owner, eventId })).toMatchObject(
      refused,
    );
    expect(
      await replayEvents(one.fixture.deps, { actor: testActor, ...one.owner, mode: "test", eventId }),
    ).toMatchObject(refused);
    const all = { since: new Date(0), until: new Date(Date.now() + HOUR) };
    expect(await replayEvents(other.fixture.deps, { actor: testActor, ...other.owner, ...all })).toEqual({
      ok: true,
      value: { count: 0 },
    });
  });
});
