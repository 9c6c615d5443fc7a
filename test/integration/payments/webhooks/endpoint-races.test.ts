import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import { describe, expect, onTestFinished, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { insertEndpointEvent } from "../../../../db/queries/webhook-events.ts";
import type { Db } from "../../../../db/tables.ts";
import { createAccount } from "../../../../payments/merchants/accounts.ts";
import { changeEndpoint, createEndpoint, deleteEndpoint } from "../../../../payments/webhooks/change-endpoints.ts";
import { rotateSecret } from "../../../../payments/webhooks/endpoint-secrets.ts";
import { listEndpoints } from "../../../../payments/webhooks/endpoint-views.ts";
import { replayEvents } from "../../../../payments/webhooks/replay-events.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { createDatabase } from "../../../support/test-database.ts";
import { testEncryption } from "../../../support/test-deps.ts";
import { waitFor } from "../../../support/wait-for.ts";

const db = openDb(await createDatabase(), { max: 5 });
addCleanup(() => db.destroy());
const encryption = testEncryption();
const base = { db: db as Db, ...encryption, now: () => new Date(), validateUrl: () => undefined };
const to = (path: string) => `https://shop.example/${path}`;

async function makeOwner() {
  const { id: accountId } = await createAccount(base, { actor: testActor, name: "Shop" });
  return { accountId, mode: "live" as const };
}

/** Returns the secrets that currently sign for an endpoint, newest first. */
async function signingSecrets(id: string): Promise<string[]> {
  const row = await db.selectFrom("webhook_endpoint").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
  const open = async (keyId: string | null, ciphertext: Buffer | null) =>
    keyId !== null && ciphertext !== null ? [await encryption.decryptWebhookSecret({ keyId, ciphertext }, id)] : [];
  return [...(await open(row.key_id, row.secret)), ...(await open(row.previous_key_id, row.previous_secret))];
}

const isBlocked = async () => {
  const { rows } = await sql`select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
  return rows.length > 0;
};

/** Runs `first` in a transaction that commits only once `second` waits for its lock. */
async function race<A, B>(first: (own: typeof base) => Promise<A>, second: () => Promise<B>): Promise<[A, B]> {
  const { promise, resolve } = Promise.withResolvers<Promise<B>>();
  const result = await db.transaction().execute(async (open) => {
    const ended = await first({ ...base, db: open });
    resolve(second());
    // Not awaited here: it ends only after this commit.
    await waitFor(isBlocked, { within: 10_000, what: "the second call to wait for the first" });
    return ended;
  });
  return [result, await await promise];
}

test("of two concurrent rotations both new secrets sign", async () => {
  const owner = await makeOwner();
  const made = unwrap(await createEndpoint(base, { actor: testActor, ...owner, url: to("a") }));
  const query = { endpointId: made.endpoint.id, actor: testActor };
  const [first, second] = await race(
    (own) => rotateSecret(own, query),
    () => rotateSecret(base, query),
  );
  expect(await signingSecrets(query.endpointId)).toEqual([unwrap(second).secret, unwrap(first).secret]);
});

test("an endpoint that is being deleted takes no change, and its URL can be registered afterwards", async () => {
  const owner = await makeOwner();
  const made = unwrap(await createEndpoint(base, { actor: testActor, ...owner, url: to("a") }));
  const query = { endpointId: made.endpoint.id, actor: testActor };
  const [, changed] = await race(
    (own) => deleteEndpoint(own, query),
    () => changeEndpoint(base, { ...query, url: to("b") }),
  );
  expect(changed).toMatchObject({ ok: false, code: "webhook_endpoint_not_found" });
  const second = unwrap(await createEndpoint(base, { actor: testActor, ...owner, url: to("a") }));
  expect(await listEndpoints(base, owner)).toMatchObject([{ id: second.endpoint.id }]);
});

describe("an event whose transaction is open while its endpoint is enabled", () => {
  /** Disables an endpoint, inserts an event in a transaction that `commit` ends, and enables the endpoint again. */
  async function enableDuringEvent() {
    const owner = await makeOwner();
    const register = async (path: string) =>
      unwrap(await createEndpoint(base, { actor: testActor, ...owner, url: to(path) })).endpoint.id;
    const query = { endpointId: await register("a"), actor: testActor };
    const subject = await register("b");
    unwrap(await changeEndpoint(base, { ...query, status: "disabled" }));
    const { promise: committing, resolve: commit } = Promise.withResolvers<void>();
    const inserted = Promise.withResolvers<string>();
    const ended = db.transaction().execute(async (open) => {
      const event = { account_id: owner.accountId, mode: owner.mode, endpoint_id: subject, at: base.now() };
      const detail = JSON.stringify({ reason: null, changed_by: null });
      inserted.resolve(await insertEndpointEvent(open, { ...event, type: "webhook_endpoint.updated", detail }));
      await committing;
    });
    onTestFinished(async () => {
      commit();
      await ended;
    });
    const eventId = await inserted.promise;
    unwrap(await changeEndpoint(base, { ...query, status: "enabled" }));
    const which = { since: new Date(0), until: new Date(Date.now() + 60_000) };
    const deliveries = () =>
      db.selectFrom("webhook_delivery").select(["endpoint_id", "state"]).where("event_id", "=", eventId).execute();
    return {
      replay: () => replayEvents(base, { ...query, which }),
      commit,
      ended,
      deliveries,
      due: [{ endpoint_id: query.endpointId, state: "pending" }],
    };
  }

  test("is part of a replay, which waits for it", async () => {
    const { replay, commit, ended, deliveries, due } = await enableDuringEvent();
    const replayed = replay();
    // A replay that does not wait has ended by then.
    await Promise.race([replayed, delay(1_000)]);
    commit();
    await ended;
    unwrap(await replayed);
    expect(await deliveries()).toEqual(due);
  });

  test("has a replay refused while it is open for long, and is part of the next one", async () => {
    const { replay, commit, ended, deliveries, due } = await enableDuringEvent();
    expect(await replay()).toMatchObject({ ok: false, code: "rate_limited" });
    commit();
    await ended;
    unwrap(await replay());
    expect(await deliveries()).toEqual(due);
  });
});
