import { sql } from "kysely";
import { expect, onTestFinished, test, vi } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { openReadReplica, type ReadReplica, type ReplicaOutcome } from "../../../../db/read-replica.ts";
import type { Pool } from "../../../../db/tables.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { execute } from "../../../support/execute-sql.ts";
import { inRealTime } from "../../../support/in-real-time.ts";
import { startReplicatedPostgres } from "../../../support/replicated-postgres.ts";
import { startTcpRelay } from "../../../support/tcp-relay.ts";
import { createDatabaseOn } from "../../../support/test-database.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { makeMerchant, makePayment, movePaymentSilently, startApi } from "../start-api.ts";

const postgres = await startReplicatedPostgres();
const databaseUrl = await createDatabaseOn(postgres.url);
/** The replica's address, which a test can cut. */
const front = await startTcpRelay({ target: Number(new URL(postgres.replicaUrl).port) });

const outcomes: ReplicaOutcome[] = [];
const reads: { replica?: ReadReplica; isUsed?: boolean; lag?: number } = {};
const replicaUrl = new URL(await roleUrl(databaseUrl, "api"));
replicaUrl.port = String(front.port);

function openReplica(primary: Pool): ReadReplica {
  const replica = openDb(replicaUrl.href, { max: 3, acceptsStandby: true });
  const opened = openReadReplica({
    primary,
    replica,
    onRead: (outcome) => void outcomes.push(outcome),
    onLag: (seconds) => Object.assign(reads, { lag: seconds }),
    onChange: (isUsed) => Object.assign(reads, { isUsed }),
  });
  addCleanup(async () => {
    opened.close();
    await replica.destroy();
  });
  reads.replica = opened;
  return opened;
}

const api = await startApi({ databaseUrl, replica: openReplica });
const merchant = await makeMerchant(api);
const isUsed = () => waitFor(() => reads.isUsed === true, { within: 20_000, what: "the replica serves reads" });

/** Returns the ids of the merchant's payments as its list shows them, and which server has served the list. */
async function list(): Promise<{ ids: string[]; outcome: ReplicaOutcome | undefined }> {
  outcomes.length = 0;
  const { status, body } = await api.get("/v1/merchants/payments", merchant.headers);
  expect(status).toBe(200);
  return { ids: (body["data"] as { paymentId: string }[]).map(({ paymentId }) => paymentId), outcome: outcomes[0] };
}

const paths = [
  "/v1/merchants/payments",
  "/v1/payments",
  "/v1/refunds",
  "/v1/statement?from=2026-01-01&until=2026-01-31",
  "/v1/statement.csv?from=2026-01-01&until=2026-01-31",
];

test.each(paths)("the replica serves %s", inRealTime, async (path) => {
  await isUsed();
  await postgres.catchUp();
  outcomes.length = 0;
  const response = await fetch(`${api.url}${path}`, { headers: merchant.headers });
  await response.text();
  expect(response.status).toBe(200);
  expect(outcomes).toEqual(["served"]);
});

test.each([
  "/v1/payments?endTs=NOW",
  "/v1/merchants/payments?endTs=NOW",
  "/v1/refunds?endTs=NOW",
  "/v1/payments?referenceId=order-1",
  "/v1/merchants/payments?referenceId=order-1",
  "/v1/refunds?paymentId=pay_00000000000000000000000000000000",
  "/v1/statement?from=2026-01-01&until=2099-12-31",
  "/v1/statement.csv?from=2026-01-01&until=2099-12-31",
])("the primary serves %s, which must not lag", async (path) => {
  await isUsed();
  outcomes.length = 0;
  const response = await fetch(`${api.url}${path.replace("NOW", new Date().toISOString())}`, {
    headers: merchant.headers,
  });
  await response.text();
  expect(response.status).toBe(200);
  expect(outcomes).toEqual([]);
});

test("a reader of the event list gets each event once and in order, from the replica and from the primary", async () => {
  for (let count = 0; count < 4; count += 1) {
    const id = await makePayment(api, merchant);
    await movePaymentSilently(api, id, "requires_action", "cancelled");
  }
  const read = async () => {
    const seen: unknown[] = [];
    outcomes.length = 0;
    for (let cursor = ""; ; ) {
      const { body } = await api.get(`/v1/events?limit=2${cursor}`, merchant.headers);
      seen.push(...(body["data"] as { id: string }[]).map(({ id }) => id));
      if (body["hasMore"] !== true) return seen;
      cursor = `&cursor=${body["nextCursor"]}`;
    }
  };
  const first = await read();
  expect(new Set(first).size).toBe(first.length);
  await postgres.catchUp();
  await isUsed();
  expect(await read()).toEqual(first);
  expect(outcomes, "pages from the replica").toContain("served");
  const latest = await api.get("/v1/events?start=latest&limit=2", merchant.headers);
  expect((latest.body["data"] as { id: string }[]).map(({ id }) => id)).toEqual(first.slice(-2));
});

test("a read that conflicts with recovery is repeated on the primary", inRealTime, async () => {
  await execute(
    databaseUrl,
    "create table if not exists kept (n int)",
    "insert into kept values (1)",
    "grant select on kept to public",
  );
  await execute(postgres.replicaUrl, "alter system set max_standby_streaming_delay = 0", "select pg_reload_conf()");
  await postgres.catchUp();
  await isUsed();
  outcomes.length = 0;
  const reading = reads.replica?.attempt(async (db) => {
    await sql`select pg_sleep(60) from kept`.execute(db);
    return { ok: true };
  });
  await waitFor(async () => (await execute(postgres.replicaUrl, sleeping)).length >= 1, { within: 20_000 });
  await execute(databaseUrl, "truncate kept");
  expect(await reading).toBeUndefined();
  expect(outcomes).toEqual(["conflict"]);
  expect((await list()).outcome, "a conflict does not exclude the replica").toBe("served");
});

test("a read that takes too long on the replica is repeated on the primary, and does not exclude the replica", async () => {
  await isUsed();
  outcomes.length = 0;
  const read = reads.replica?.attempt((db) =>
    db.transaction().execute(async (transaction) => {
      await sql`set local statement_timeout = 50`.execute(transaction);
      await sql`select pg_sleep(60)`.execute(transaction);
      return { ok: true };
    }),
  );
  expect(await read).toBeUndefined();
  expect(outcomes).toEqual(["slow"]);
  expect((await list()).outcome).toBe("served");
});

test("no replica is used after a promotion until the workers have begun a new epoch", async () => {
  await isUsed();
  await execute(databaseUrl, "update database_epoch set identity = 'the server before the promotion'");
  await waitFor(() => reads.isUsed === false, { within: 20_000, what: "the promotion is noticed" });
  await execute(
    databaseUrl,
    "update database_epoch set id = gen_random_uuid()::text, identity = database_identity(tableoid)",
  );
  await isUsed();
});

const sleeping =
  "select from pg_stat_activity where state = 'active' and query like '%pg_sleep%' and pid <> pg_backend_pid()";

test("lists are served without the replica while it is away, and by it again afterwards", async () => {
  const id = await makePayment(api, merchant);
  front.to(undefined);
  expect((await list()).ids, "the first list after the loss").toContain(id);
  await waitFor(() => reads.isUsed === false, { within: 20_000, what: "the loss is noticed" });
  expect(await list()).toMatchObject({ ids: expect.arrayContaining([id]), outcome: "behind" });
  front.to(Number(new URL(postgres.replicaUrl).port));
  await isUsed();
  expect((await list()).outcome).toBe("served");
});

test("a lagging replica delays lists for seconds, and nothing else: neither statuses, nor new merchants, nor revoked keys", async () => {
  await postgres.catchUp();
  await isUsed();
  // Until it is restored, the lag stays within the bound, however long a slow machine takes for these requests.
  const present = performance.now();
  const clock = vi.spyOn(performance, "now").mockReturnValue(present);
  onTestFinished(() => clock.mockRestore());
  postgres.freeze();
  const id = await makePayment(api, merchant);
  const other = await makeMerchant(api);
  expect((await api.get(`/v1/payments/${id}`, merchant.headers)).body).toMatchObject({ paymentId: id });
  const lagging = await list();
  expect(lagging.outcome).toBe("served");
  expect(lagging.ids).not.toContain(id);

  outcomes.length = 0;
  expect((await api.get("/v1/merchants/payments", other.headers)).status, "a merchant that the replica lacks").toBe(
    200,
  );
  expect(outcomes).toEqual(["refused"]);
  clock.mockRestore();
  await execute(databaseUrl, `update api_key set revoked_at = now() where account_id = '${other.accountId}'`);
  await waitFor(async () => (await api.get("/v1/merchants/payments", other.headers)).status === 401, {
    within: 20_000,
  });

  await waitFor(async () => (await list()).ids.includes(id), { within: 15_000, what: "the lag exceeds the bound" });
  expect((await list()).outcome).toBe("behind");
  await waitFor(() => (reads.lag ?? 0) > 5, { within: 20_000, what: "the reported lag exceeds the bound" });
});
