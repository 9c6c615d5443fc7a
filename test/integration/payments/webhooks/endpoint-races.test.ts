import { sql } from "kysely";
import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import type { Db } from "../../../../db/tables.ts";
import { createAccount } from "../../../../payments/merchants/accounts.ts";
import {
  deleteEndpoint,
  findEndpoint,
  rotateSecret,
  setEndpoint,
} from "../../../../payments/webhooks/webhook-endpoints.ts";
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

test("a secret rotated while its endpoint moves keeps signing beside the newest secret", async () => {
  const owner = await makeOwner();
  const { id } = unwrap(await setEndpoint(base, { actor: testActor, ...owner, url: to("a") }));
  const [rotated, moved] = await race(
    (own) => rotateSecret(own, { ...owner, actor: testActor }),
    () => setEndpoint(base, { actor: testActor, ...owner, url: to("b") }),
  );
  expect(await signingSecrets(id)).toEqual([unwrap(moved).secret, unwrap(rotated).secret]);
});

test("an endpoint registered while the previous one is being deleted is a new endpoint", async () => {
  const owner = await makeOwner();
  const before = unwrap(await setEndpoint(base, { actor: testActor, ...owner, url: to("a") }));
  const [, registered] = await race(
    (own) => deleteEndpoint(own, { ...owner, actor: testActor }),
    () => setEndpoint(base, { actor: testActor, ...owner, url: to("b") }),
  );
  const { id } = unwrap(registered);
  expect(id).not.toBe(before.id);
  expect(unwrap(await findEndpoint(base, owner))).toMatchObject({ id, url: to("b") });
});
