import type { ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { createOutward, findUrlFault } from "../../../ops/outward.ts";
import { deliverDue } from "../../../payments/deliver.ts";
import { takeOwed } from "../../../payments/sweep.ts";
import { listDeliveries, replayEvents } from "../../../payments/webhook-events.ts";
import { deleteEndpoint, findEndpoint, rotateSecret, setEndpoint } from "../../../payments/webhooks.ts";
import { startChain } from "../../support/chain.ts";
import { createDatabase } from "../../support/database.ts";
import { type Arrival, deliverAll, makeHook, register, startEndpoint, verifyArrival } from "../../support/endpoint.ts";
import { insertPaymentRow } from "../../support/rows.ts";
import { good, makeTill } from "../../support/till.ts";

const chain = await startChain();
const databaseUrl = await createDatabase();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const schedule = [5_000, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];
/** Time that steps of a test may take on a slow machine. */
const SLACK_MS = 2_000;

/** The same as verifying, for clocks that were turned: a verifier of today would find the time stale. */
function isSignedWith(secret: string, { headers, body }: Arrival): boolean {
  const at = new Date(Number(headers["webhook-timestamp"]) * 1000);
  const right = new Webhook(secret).sign(String(headers["webhook-id"]), at, body);
  return String(headers["webhook-signature"]).split(" ").includes(right);
}

describe("an endpoint that does not take an event", () => {
  test("is asked again after the waits that were published, with the same bytes, and then no more", async () => {
    const { till, endpoint, deliver, deliveries, secret } = await makeHook(chain);
    endpoint.answer(500);
    await till.create();
    await deliver();
    for (const [index, wait] of schedule.entries()) {
      till.clock.advance(wait - SLACK_MS);
      expect(await deliver(), `too early for attempt ${index + 2}`).toBe(0);
      till.clock.advance(SLACK_MS);
      expect(await deliver()).toBe(1);
      expect(endpoint.arrivals).toHaveLength(index + 2);
    }
    expect(await deliveries()).toMatchObject([{ state: "given_up", tries: 8, last_outcome: "500", due_at: null }]);
    till.clock.advance(100 * HOUR);
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
    expect(till.lines.join("")).toContain("webhook event given up");
    expect(till.lines.join("")).not.toContain("s3cret");
  });

  test("and takes it later has it once, and the rest of the schedule is forgotten", async () => {
    const { till, endpoint, deliver, deliveries } = await makeHook(chain);
    endpoint.answer(503);
    await till.create();
    await deliver();
    endpoint.answer(204);
    till.clock.advance(5_000);
    await deliver();
    till.clock.advance(100 * HOUR);
    await deliver();
    expect(endpoint.arrivals).toHaveLength(2);
    expect(await deliveries()).toMatchObject([{ state: "delivered", tries: 2, last_outcome: "204" }]);
  });

  test("because it redirects is not followed", async () => {
    const { till, endpoint, deliver, deliveries } = await makeHook(chain);
    const other = await startEndpoint();
    endpoint.answer((_arrival, response) => void response.writeHead(307, { location: other.url }).end());
    await till.create();
    await deliver();
    expect(other.arrivals).toEqual([]);
    expect(await deliveries()).toMatchObject([{ state: "pending", tries: 1, last_outcome: "307" }]);
  });

  test("because nobody is there, or nobody answers in time, says so", async () => {
    const { till, endpoint, deliveries, id } = await makeHook(chain);
    endpoint.answer(() => undefined);
    await till.create();
    const outward: typeof till.deps.outward = (request) => till.deps.outward({ ...request, timeoutMs: 300 });
    const signal = new AbortController().signal;
    await deliverDue({ ...till.deps, outward }, { endpointId: id, signal });
    expect(await deliveries()).toMatchObject([{ tries: 1, last_outcome: "timeout" }]);
    await register(till, "http://127.0.0.1:1/");
    till.clock.advance(5_000);
    await deliverDue(till.deps, { endpointId: id, signal });
    expect(await deliveries()).toMatchObject([{ tries: 2, last_outcome: "unreachable" }]);
  });

  test("because its address is private is not even connected to, where that is not allowed", async () => {
    const { till, endpoint, deliveries, id } = await makeHook(chain);
    await register(till, endpoint.url.replace("http:", "https:"));
    await till.create();
    const guarded = { ...till.deps, outward: createOutward({ allowPrivate: false }) };
    await deliverDue(guarded, { endpointId: id, signal: new AbortController().signal });
    expect(endpoint.arrivals).toEqual([]);
    expect(await deliveries()).toMatchObject([{ state: "pending", tries: 1, last_outcome: "refused address" }]);
  });
});

test("an answer counts by its status: a body without end neither fails nor delays it", async () => {
  const { till, endpoint, deliver, deliveries } = await makeHook(chain);
  endpoint.answer((_arrival, response) => {
    response.writeHead(200, { "content-encoding": "gzip" });
    const more = setInterval(() => response.write(Buffer.alloc(10_000)), 5);
    response.on("close", () => clearInterval(more));
  });
  const began = Date.now();
  await till.create();
  await deliver();
  expect(Date.now() - began).toBeLessThan(5_000);
  expect(await deliveries()).toMatchObject([{ state: "delivered", last_outcome: "200" }]);
});

test("an event that hangs holds up neither the others of its endpoint nor those of another account", async () => {
  const one = await makeHook(chain);
  const other = await makeHook(chain, { databaseUrl: one.till.databaseUrl });
  const stuck = await one.till.create();
  one.endpoint.answer((arrival, response) => {
    if (arrival.event.data.payment_id !== stuck) response.end();
  });
  const outward: typeof one.till.deps.outward = (request) => one.till.deps.outward({ ...request, timeoutMs: 3_000 });
  const signal = new AbortController().signal;
  const hanging = deliverDue({ ...one.till.deps, outward }, { endpointId: one.id, signal });
  // More than fit side by side, and made while the first one hangs.
  for (let count = 0; count < 100; count += 1) await one.till.create();
  await other.till.create();
  await deliverAll(other.till);
  expect(other.endpoint.arrivals).toHaveLength(1);
  await hanging;
  expect(one.endpoint.arrivals).toHaveLength(101);
  const rows = await one.deliveries();
  const state = (id: string) => rows.find((row) => row.payment_id === id)?.last_outcome;
  expect(state(stuck)).toBe("timeout");
  expect(rows.filter((row) => row.last_outcome === "200")).toHaveLength(101);
});

test("several workers at one endpoint send each event once", async () => {
  const { till, endpoint, id } = await makeHook(chain);
  for (let count = 0; count < 40; count += 1) await till.create();
  const signal = new AbortController().signal;
  await Promise.all(Array.from({ length: 8 }, () => deliverDue(till.deps, { endpointId: id, signal })));
  expect(endpoint.arrivals).toHaveLength(40);
  expect(new Set(endpoint.arrivals.map(({ event }) => event.id)).size).toBe(40);
});

test("a worker that was given up for dead and answers late does not count an attempt that another one has made", async () => {
  const { till, endpoint, id, deliveries } = await makeHook(chain);
  const signal = new AbortController().signal;
  const held = Promise.withResolvers<ServerResponse>();
  endpoint.answer((_arrival, response) => held.resolve(response));
  await till.create();
  const late = deliverDue(till.deps, { endpointId: id, signal });
  const response = await held.promise;
  // Nobody has heard of it for as long as a lease lasts.
  await till.db
    .updateTable("webhook_endpoint")
    .set({ busy_until: new Date(0) })
    .where("id", "=", id)
    .execute();
  endpoint.answer(502);
  await deliverDue(till.deps, { endpointId: id, signal });
  response.writeHead(500).end();
  await late;
  expect(endpoint.arrivals).toHaveLength(2);
  expect(await deliveries()).toMatchObject([{ tries: 1, last_outcome: "502" }]);
});

test("an endpoint is rung for once, again when nobody has answered, and only that second ring is a find", async () => {
  const { till, id } = await makeHook(chain);
  const sweep = async () => (await takeOwed(till.deps)).endpoints;
  expect(await sweep()).toEqual([]);
  await till.create();
  expect(await sweep()).toEqual([{ id, again: 1, lost: false }]);
  expect(await sweep()).toEqual([]);
  till.clock.advance(5_000);
  expect(await sweep()).toEqual([{ id, again: 2, lost: true }]);
  await deliverDue(till.deps, { endpointId: id, signal: new AbortController().signal });
  await till.create();
  expect(await sweep()).toEqual([{ id, again: 3, lost: false }]);
});

describe("who is told", () => {
  test("is the payment's own account in its own mode, and nobody else", async () => {
    const live = await makeHook(chain);
    const stranger = await makeHook(chain, { databaseUrl: live.till.databaseUrl });
    const testEndpoint = await startEndpoint();
    const ofTest = { ...live.till, mode: "test" as const };
    await register(ofTest, testEndpoint.url);
    const id = await live.till.create();
    const testId = await insertPaymentRow(live.till.db, live.till, { mode: "test" });
    await deliverAll(live.till);
    const heard = (of: { arrivals: Arrival[] }) => of.arrivals.map(({ event }) => event.data.payment_id);
    expect(heard(live.endpoint)).toEqual([id]);
    expect(heard(testEndpoint)).toEqual([testId]);
    expect(stranger.endpoint.arrivals).toEqual([]);
  });

  test("is nobody without an endpoint: nothing is written down", async () => {
    const till = await makeTill(chain);
    await till.create();
    expect(await till.db.selectFrom("webhook_delivery").select("id").execute()).toEqual([]);
  });

  test("hears nothing of a payment that was never committed", async () => {
    const { till, deliveries } = await makeHook(chain);
    const rolledBack = till.db.transaction().execute(async (db) => {
      await till.create();
      await db.updateTable("payment").set({ state: "processing" }).execute();
      throw new Error("never mind");
    });
    await expect(rolledBack).rejects.toThrow("never mind");
    expect((await deliveries()).map(({ type }) => type)).toEqual(["payment.created"]);
  });
});

describe("a secret", () => {
  test("is stored where nobody can read it, and another one for every endpoint", async () => {
    const [one, other] = [await makeHook(chain), await makeHook(chain)];
    expect(one.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(other.secret).not.toBe(one.secret);
    const row = await one.till.db.selectFrom("webhook_endpoint").selectAll().executeTakeFirstOrThrow();
    expect(row.secret.toString("latin1")).not.toContain(one.secret);
    expect(row.secret.includes(Buffer.from(one.secret.slice(6), "base64"))).toBe(false);
  });

  test("that is rotated signs beside the new one for a day, and then no more", async () => {
    const { till, endpoint, owner, secret, deliver } = await makeHook(chain);
    const next = good(await rotateSecret(till.deps, owner)).secret;
    await till.create();
    await deliver();
    const [both] = endpoint.arrivals as [Arrival];
    expect(String(both.headers["svix-signature"]).split(" ")).toHaveLength(2);
    verifyArrival(secret, both);
    verifyArrival(next, both);
    till.clock.advance(24 * HOUR);
    await till.create();
    await deliver();
    const late = endpoint.arrivals[1] as Arrival;
    expect([isSignedWith(secret, late), isSignedWith(next, late)]).toEqual([false, true]);
    expect(() => verifyArrival(`whsec_${Buffer.alloc(32).toString("base64")}`, both)).toThrow(/No matching signature/);
  });
});

describe("an endpoint", () => {
  const strict = { findUrlFault: (url: string) => findUrlFault({ allowPrivate: false }, url) };

  test.each([
    ["http://shop.example.test/hooks", "expected an https URL"],
    ["https://127.0.0.1/hooks", "is not on the public internet"],
    ["https://[::ffff:10.0.0.1]/", "is not on the public internet"],
    ["https://0x7f.1/", "is not on the public internet"],
    ["https://me:secret@shop.example.test/", "holds a user name or password"],
    ["shop.example.test", "expected a URL"],
  ])("at %s is refused", async (url, reason) => {
    const till = await makeTill(chain, { databaseUrl });
    const set = await setEndpoint({ ...till.deps, ...strict }, { accountId: till.accountId, mode: "live", url });
    expect(set).toEqual({ ok: false, code: "params_validation", message: `url: ${reason}` });
    expect(await findEndpoint(till.deps, { accountId: till.accountId, mode: "live" })).toMatchObject({ ok: false });
  });

  test("of an account that is not there is refused", async () => {
    const till = await makeTill(chain, { databaseUrl });
    const args = { accountId: "acct_0", mode: "live" as const, url: "https://shop.example.test/" };
    expect(await setEndpoint({ ...till.deps, ...strict }, args)).toMatchObject({
      ok: false,
      code: "params_validation",
    });
  });

  test("is one per account and mode, however many are set at once", async () => {
    const till = await makeTill(chain, { databaseUrl });
    const made = await Promise.all(Array.from({ length: 6 }, () => register(till, "https://shop.example.test/")));
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect(new Set(made.map(({ secret }) => secret)).size).toBe(6);
  });

  test("that moves takes along what it is owed", async () => {
    const { till, endpoint, deliver, id, owner } = await makeHook(chain);
    await till.create();
    const next = await startEndpoint();
    expect((await register(till, next.url)).id).toBe(id);
    await deliver();
    expect([endpoint.arrivals.length, next.arrivals.length]).toEqual([0, 1]);
    expect(good(await findEndpoint(till.deps, owner))).toMatchObject({ id, url: next.url, mode: "live" });
  });

  test("that is deleted is sent nothing more, and a new one only what happens from then on", async () => {
    const { till, endpoint, deliver, deliveries, owner, id } = await makeHook(chain);
    endpoint.answer(500);
    await till.create();
    await deliver();
    await till.create();
    expect(good(await deleteEndpoint(till.deps, owner))).toEqual({ id });
    till.clock.advance(HOUR);
    expect(await deliver()).toBe(0);
    expect(endpoint.arrivals).toHaveLength(1);
    expect((await deliveries()).map((row) => row.last_outcome)).toEqual(["endpoint deleted", "endpoint deleted"]);
    for (const refused of [
      await deleteEndpoint(till.deps, owner),
      await rotateSecret(till.deps, owner),
      await replayEvents(till.deps, { ...owner, state: "given_up" }),
      await listDeliveries(till.deps, { ...owner, limit: 10 }),
    ])
      expect(refused).toMatchObject({ ok: false, code: "invalid_params" });

    endpoint.answer(200);
    const again = await register(till, endpoint.url);
    expect(again.id).not.toBe(id);
    await till.create();
    await deliver();
    expect(endpoint.arrivals).toHaveLength(2);
  });

  test("that was deleted while a payment was being made is not sent that one either", async () => {
    const { till, endpoint, deliver, deliveries, id } = await makeHook(chain);
    await till.create();
    // As if the payment's transaction had seen the endpoint just before.
    await till.db.updateTable("webhook_endpoint").set({ deleted_at: new Date() }).where("id", "=", id).execute();
    await deliver();
    expect(endpoint.arrivals).toEqual([]);
    expect(await deliveries()).toMatchObject([{ state: "given_up", last_outcome: "endpoint deleted" }]);
  });
});

describe("a replay", () => {
  test("sends one event again, under the same id, with the schedule from its beginning", async () => {
    const { till, endpoint, deliver, owner } = await makeHook(chain);
    await till.create();
    await till.create();
    await deliver();
    const [first] = endpoint.arrivals as [Arrival];
    expect(await replayEvents(till.deps, { ...owner, eventId: first.event.id })).toEqual({
      ok: true,
      value: { count: 1 },
    });
    endpoint.answer(500);
    await deliver();
    expect(endpoint.arrivals).toHaveLength(3);
    expect(endpoint.arrivals[2]?.body).toBe(first.body);
    const [row] = good(await listDeliveries(till.deps, { ...owner, state: "pending", limit: 10 }));
    expect(row).toMatchObject({ eventId: first.event.id, tries: 1, lastOutcome: "500", deliveredAt: null });
  });

  test("of a time, or of what was given up, sends those and no others", async () => {
    const { till, endpoint, deliver, owner } = await makeHook(chain);
    const early = await till.create();
    await deliver();
    till.clock.advance(HOUR);
    const since = till.deps.now();
    const late = await till.create();
    await deliver();
    const until = new Date(since.getTime() + MINUTE);
    expect(await replayEvents(till.deps, { ...owner, since, until })).toEqual({ ok: true, value: { count: 1 } });
    await deliver();
    expect([endpoint.of(early).length, endpoint.of(late).length]).toEqual([1, 2]);

    await till.db.updateTable("webhook_delivery").set({ state: "given_up" }).where("payment_id", "=", early).execute();
    expect(await replayEvents(till.deps, { ...owner, state: "given_up" })).toEqual({ ok: true, value: { count: 1 } });
    await deliver();
    expect([endpoint.of(early).length, endpoint.of(late).length]).toEqual([2, 2]);
  });

  test("reaches no event of another account or mode", async () => {
    const one = await makeHook(chain);
    const other = await makeHook(chain, { databaseUrl: one.till.databaseUrl });
    await one.till.create();
    await one.deliver();
    const eventId = one.endpoint.arrivals[0]?.event.id ?? "";
    const refused = { ok: false, code: "invalid_params" };
    expect(await replayEvents(other.till.deps, { ...other.owner, eventId })).toMatchObject(refused);
    expect(await replayEvents(one.till.deps, { ...one.owner, mode: "test", eventId })).toMatchObject(refused);
    const all = { since: new Date(0), until: new Date(Date.now() + HOUR) };
    expect(await replayEvents(other.till.deps, { ...other.owner, ...all })).toEqual({ ok: true, value: { count: 0 } });
  });
});
