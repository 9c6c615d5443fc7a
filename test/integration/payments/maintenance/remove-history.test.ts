import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { sql } from "kysely";
import pg from "pg";
import { expect, test } from "vitest";
import { encodeTransfer } from "../../../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../../../db/chain-families.ts";
import { grants } from "../../../../db/grants.ts";
import { migrateDatabase } from "../../../../db/migrate.ts";
import { moveRows } from "../../../../db/moves.ts";
import type { Db, RetainedRelation } from "../../../../db/tables.ts";
import { makeScratch } from "../../../../local/scratch-folder.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { type ExportHistory, openHistoryExport } from "../../../../payments/maintenance/export-history.ts";
import { readPaymentReport } from "../../../../payments/maintenance/payment-report.ts";
import { removeHistory } from "../../../../payments/maintenance/remove-history.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { findEventPayload, listEvents } from "../../../../payments/webhooks/list-events.ts";
import { memberNames } from "../../../../runtime/member-names.ts";
import { toAuthorization } from "../../../../transfers/evm/authorization-calls.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { adminIn } from "../../../support/admin.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { insertPaymentRow } from "../../../support/insert-rows.ts";
import { type MerchantFixture, makeMerchantFixture, signOption, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { copyDatabase, createEmptyDatabase } from "../../../support/test-database.ts";
import { relayByThirdParty } from "../../../support/transfers-fixture.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { deliverAll, makeWebhookFixture } from "../../../support/webhook-endpoint.ts";

const chain = await startChain();
// Not the template of all tests: this file's database is made by the migrations as they are now (`npm run mutate`).
const migrated = await createEmptyDatabase();
await migrateDatabase(migrated);
const own = async () => ({ databaseUrl: await copyDatabase(migrated) });
const DAY_MS = 86_400_000;
const days = { attempt: 30, webhook_event: 30, event: 30, payment_option: 30 };

/** Tables whose rows leave, and those that record it. */
const changing = new Set<string>([
  ...["attempt", "webhook_event", "webhook_delivery", "webhook_attempt", "event", "payment_option"],
  ...["retention", "retained_payment"],
]);

/** Returns a hash of the rows of every table from which nothing may leave. */
async function readKept(db: Db): Promise<Record<string, string>> {
  const kept: Record<string, string> = {};
  for (const name of memberNames(grants).filter((table) => !changing.has(table))) {
    const { rows } = await sql<{ hash: string }>`
      select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) as hash from ${sql.table(name)} t`.execute(
      db,
    );
    kept[name] = rows[0]?.hash ?? "";
  }
  return kept;
}

/** Moves every time in the rows of payments back, and the watcher's progress beyond the payments' deadlines. */
async function age({ db }: Pick<MerchantFixture, "db">, by = 60): Promise<void> {
  const { rows } = await sql<{ name: string; columns: string[] }>`
    select table_name as name, array_agg(column_name::text) as columns from information_schema.columns
    where table_schema = 'public' and data_type = 'timestamp with time zone'
      and table_name in ('payment', 'payment_option', 'attempt', 'transfer', 'event', 'settlement', 'refund', 'webhook_event',
        'webhook_delivery', 'webhook_attempt')
    group by table_name`.execute(db);
  await db.transaction().execute(async (own) => {
    await sql`set local session_replication_role = replica`.execute(own);
    for (const { name, columns } of rows) {
      const moved = columns.map((column) => sql`${sql.ref(column)} = ${sql.ref(column)} - ${by} * interval '1 day'`);
      await sql`update ${sql.table(name)} set ${sql.join(moved)}`.execute(own);
    }
    await sql`update chain_cursor set chain_time = now()`.execute(own);
  });
}

/** Removes what is older than 30 days, 31 days from now. */
const remove = ({ deps }: Pick<MerchantFixture, "deps">, exportHistory?: ExportHistory) =>
  removeHistory({ ...deps, now: () => new Date(Date.now() + 31 * DAY_MS) }, { days, exportHistory });

/** Returns the number of rows of a table; of webhook events, those that are about payments. */
async function count(db: Db, table: string): Promise<number> {
  const ofPayments = table === "webhook_event" ? sql`where payment_id is not null` : sql``;
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from ${sql.table(table)} ${ofPayments}`.execute(db);
  return rows[0]?.count ?? 0;
}

/** Returns of which payments rows of a table were kept when they were passed. */
async function listRetained(db: Db, relation: RetainedRelation): Promise<string[]> {
  const rows = await db.selectFrom("retained_payment").select("payment_id").where("relation", "=", relation).execute();
  return rows.map(({ payment_id }) => payment_id).sort();
}

/** Pays out what is owed for a payment. */
async function payOut(fixture: MerchantFixture, paymentId: string): Promise<void> {
  expect(await fixture.settle((await fixture.settlementOf(paymentId)).id)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
}

test("the history of a payment that was paid out leaves, everything about its money stays, and it can still be read and refunded", async () => {
  const { fixture, deliver, owner } = await makeWebhookFixture(chain, await own());
  const { db, deps } = fixture;
  const paymentId = await fixture.pay(await fundBuyer(chain));
  await payOut(fixture, paymentId);
  await deliver();
  const page = unwrap(await listEvents(deps, { ...owner, limit: 50, payload: "full" }));
  const firstEvent = page.items.find(({ type }) => type === "payment.created");
  await age(fixture);
  const [status, kept] = [await fixture.status(paymentId), await readKept(db)];
  const folder = await makeScratch("history");
  addCleanup(() => rm(folder, { recursive: true, force: true }));

  await remove(fixture, openHistoryExport(folder));
  expect(await readKept(db)).toEqual(kept);
  expect(await count(db, "attempt")).toBe(0);
  // The newest event of the list stays, with its delivery, so that a reader's cursor remains valid.
  expect(await count(db, "webhook_event")).toBe(1);
  expect(
    unwrap(await listEvents(deps, { ...owner, cursor: page.nextCursor ?? "", limit: 5, payload: "full" })).items,
  ).toEqual([]);
  expect(await findEventPayload(deps, { ...owner, id: firstEvent?.id ?? "", payload: "full" })).toMatchObject({
    ok: false,
  });
  // And while it stays, so do the moves that its payload names.
  expect(await listRetained(db, "event")).toEqual([paymentId]);
  const follow = async (at: string) => {
    await sql`update webhook_event set position = 1000, at = ${at}::timestamptz where id = (
      select min(id) from webhook_event where payment_id is null and mode = 'live')`.execute(db);
    await sql`update retained_payment set retry_at = now()`.execute(db);
    await remove(fixture, openHistoryExport(folder));
    return count(db, "webhook_event");
  };
  // It leaves when the next event is old too: until then a reader may not have read on.
  expect(await follow("now")).toBe(1);
  expect(await follow("2026-01-01")).toBe(0);
  const machines = await db.selectFrom("event").select("machine").distinct().orderBy("machine").execute();
  expect(machines.map(({ machine }) => machine)).toEqual([
    "destination_change",
    "settlement",
    "transaction",
    "transfer",
  ]);
  expect(await listRetained(db, "event")).toEqual([]);

  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".jsonl.gz"));
  const lines = await Promise.all(files.map(async (file) => gunzipSync(await readFile(join(folder, file))).toString()));
  const exported = lines
    .flatMap((text) => text.trim().split("\n"))
    .map((line) => JSON.parse(line) as { table: string });
  const tables = [...new Set(exported.map(({ table }) => table))].sort();
  expect(tables).toEqual(["attempt", "event", "webhook_attempt", "webhook_delivery", "webhook_event"]);
  expect(exported.filter(({ table }) => table === "webhook_event")).toHaveLength(
    page.items.filter(({ type }) => type.startsWith("payment.")).length,
  );

  expect(await fixture.status(paymentId)).toEqual(status);
  const report = await readPaymentReport(deps, paymentId);
  expect(report).toMatchObject({ payment: { state: "succeeded" }, attempts: [], webhooks: [] });
  expect(report?.removed).toEqual(["attempt", "event", "payment_option", "webhook_event"]);
  expect(report?.ledger.length).toBeGreaterThan(0);
  const refund = unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode: "live" }));
  expect(refund.refundId).toMatch(/^rfnd_/);
});

test("nothing of a payment leaves before it is paid or has ended, and is paid out, refunded and delivered", async () => {
  const { fixture, deliver } = await makeWebhookFixture(chain, await own());
  const { db, deps } = fixture;
  const open = await fixture.create();
  const processing = await fixture.create();
  await fixture.verify(await fixture.attempt(processing, await fundBuyer(chain)));
  await fixture.relay();
  await fixture.watch();
  const owed = await fixture.pay(await fundBuyer(chain));
  const [refunding, undelivered] = [
    await fixture.pay(await fundBuyer(chain)),
    await fixture.pay(await fundBuyer(chain)),
  ];
  for (const paymentId of [refunding, undelivered]) await payOut(fixture, paymentId);
  await deliver();
  unwrap(await refundPayment(deps, { actor: testActor, paymentId: refunding, mode: "live" }));
  await sql`update webhook_delivery d set state = 'pending', due_at = now(), delivered_at = null from webhook_event v
    where v.id = d.event_id and v.payment_id = ${undelivered}`.execute(db);
  // A transfer that a reorg has made unfinished again: its events say that a transaction may still make it.
  await db.transaction().execute(async (own) => {
    await sql`set local session_replication_role = replica`.execute(own);
    await sql`update payment set state = 'processing' where id = ${processing}`.execute(own);
    await sql`update transfer set state = 'ready' where payment_id = ${processing}`.execute(own);
  });
  await age(fixture);
  await remove(fixture);
  expect(await listRetained(db, "attempt")).toEqual([processing, owed, refunding].sort());
  expect(await listRetained(db, "webhook_event")).toEqual([open, processing, owed, refunding, undelivered].sort());
  expect(await listRetained(db, "event")).toEqual([open, processing, owed, refunding, undelivered].sort());
  expect(await listRetained(db, "payment_option")).toEqual([]);

  const { stdout } = await adminIn({ DATABASE_URL: fixture.databaseUrl })("retention", "status", "--json");
  expect(JSON.parse(stdout)).toMatchObject([
    { table: "attempt", days: 30, due: 0, kept: 3, failing: 0 },
    { table: "event", kept: 5, due: 0 },
    { table: "payment_option", kept: 0 },
    { table: "webhook_event", kept: 5, removed: 0 },
  ]);
});

test("the history of a refunded payment leaves when the refund has taken all of a payout that still accumulated", async () => {
  const { fixture, deliver } = await makeWebhookFixture(chain, await own());
  const { db, deps, mode } = fixture;
  await accumulatePayouts(fixture, { ms: 60_000 });
  const paymentId = await fixture.pay(await fundBuyer(chain));
  const { refundId } = unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode }));
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "netted" });
  await deliver();
  await age(fixture);
  await remove(fixture);
  expect(await listRetained(db, "attempt")).toEqual([]);
  expect(await count(db, "attempt")).toBe(0);
});

test("events stay whose delivery is replayed while they are removed, and leave once the refund after them has ended", async () => {
  const { fixture, deliver } = await makeWebhookFixture(chain, await own());
  const { db, deps } = fixture;
  const paymentId = await fixture.pay(await fundBuyer(chain));
  await payOut(fixture, paymentId);
  await deliver();
  await age(fixture);
  const replayed = Promise.withResolvers<void>();
  const replay = db.transaction().execute(async (other) => {
    await sql`update webhook_delivery d set state = 'pending', due_at = now(), delivered_at = null from webhook_event v
      where v.id = d.event_id and v.payment_id = ${paymentId} and v.type = 'payment.succeeded'`.execute(other);
    await replayed.promise;
  });
  const removal = remove(fixture);
  const isWaiting = async () => {
    const { rows } = await sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
    return rows.length > 0;
  };
  await waitFor(isWaiting, { within: 20_000, what: "the removal waits for the replay" });
  replayed.resolve();
  await Promise.all([replay, removal]);
  const readEvents = async () => {
    const { rows } = await sql<{ type: string }>`select type from webhook_event
      where payment_id is not null or refund_id is not null order by sequence`.execute(db);
    return rows.map(({ type }) => type);
  };
  expect(await readEvents()).toEqual(["payment.succeeded"]);
  const failing = await db.selectFrom("retained_payment").select("error").where("error", "is not", null).execute();
  expect(failing).toEqual([]);
  await deliver();
  await sql`update retained_payment set retry_at = now()`.execute(db);
  await age(fixture);
  await remove(fixture);
  expect(await listRetained(db, "webhook_event")).toEqual([]);

  const { refundId } = unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode: "live" }));
  const end = { ids: [refundId], at: deps.now(), set: { due_at: null } };
  await moveRows(db, "refund", { ...end, from: "due", to: "withdrawn" });
  expect(await readEvents()).toEqual(["refund.created", "refund.failed"]);
  await deliver();
  await age(fixture);
  await remove(fixture);
  expect(await readEvents()).toEqual([]);
});

test("a quote that was not paid leaves once its chain was read, and late money for it is booked as an exception", async () => {
  const fixture = await makeMerchantFixture(chain, await own());
  const { db, deps } = fixture;
  const paymentId = await fixture.create();
  const buyer = await fundBuyer(chain);
  const [option] = await fixture.offer(paymentId, buyer);
  const row = await db.selectFrom("payment_option").selectAll().executeTakeFirstOrThrow();
  const [signed] = await signOption(option ?? ({} as never), buyer);
  await db.transaction().execute(async (own) => {
    const set = { due_at: null };
    await moveRows(own, "payment", { ids: [paymentId], from: "requires_action", to: "cancelled", at: deps.now(), set });
  });
  await age(fixture);
  await sql`update chain_cursor set chain_time = now() - interval '61 days'`.execute(db);
  await remove(fixture);
  expect(await listRetained(db, "payment_option")).toEqual([paymentId]);
  await sql`update chain_cursor set chain_time = now()`.execute(db);
  // An asset that is read again may bring money, and so may one that was left before the deadline and not long ago.
  const isAtRest = async (since: string, until: number | null) => {
    await sql`insert into asset_backfill (chain, asset, number, until, since)
      values (${row.chain}, ${row.asset}, 0, ${until}, now() - ${since}::interval)
      on conflict (chain, asset) do update set until = excluded.until, since = excluded.since`.execute(db);
    const { rows } = await sql`select payments_at_rest(array[${paymentId}], now() - interval '30 days')`.execute(db);
    return rows.length === 1;
  };
  const resting = [await isAtRest("1 day", 9), await isAtRest("61 days", null)];
  expect([...resting, await isAtRest("1 day", null), await isAtRest("121 days", null)]).toEqual([
    false,
    false,
    true,
    true,
  ]);
  await sql`delete from asset_backfill`.execute(db);
  await sql`update retained_payment set retry_at = now()`.execute(db);
  await remove(fixture);
  expect(await count(db, "payment_option")).toBe(0);
  expect(await listRetained(db, "payment_option")).toEqual([]);

  await relayByThirdParty(chain, encodeTransfer(toAuthorization(readEvmRow(row)), signed?.data[0] as `0x${string}`));
  await fixture.watch();
  const late = (await listExceptions(deps, 100)).filter(({ payer }) => payer === row.payer);
  expect(late).toMatchObject([{ amount: row.amount, paymentId: null, kind: "unknown" }]);
  expect((await fixture.status(paymentId)).state).toBe("cancelled");
});

/** Inserts ended payments without attempts, with their first events. */
async function insertEnded(fixture: MerchantFixture, payments: number): Promise<string[]> {
  const ids: string[] = [];
  for (let made = 0; made < payments; made += 1)
    ids.push(await insertPaymentRow(fixture.db, fixture, { state: "expired" }));
  await age(fixture);
  return ids.sort();
}

test("a run that fails between export and removal removes nothing, and its repetition writes the same file", async () => {
  const fixture = await makeMerchantFixture(chain, await own());
  const { db } = fixture;
  await insertEnded(fixture, 3);
  const scratch = await makeScratch("history");
  addCleanup(() => rm(scratch, { recursive: true, force: true }));
  const folder = join(scratch, "not", "made");
  const write = openHistoryExport(folder);
  const crash: ExportHistory = async (batch) => {
    await write(batch);
    throw new Error("the process ended");
  };
  const files = async () => (await readdir(folder, { recursive: true })).filter((name) => name.includes("jsonl"));
  const events = await count(db, "webhook_event");
  await expect(remove(fixture, crash)).rejects.toThrow("the process ended");
  expect(await count(db, "webhook_event")).toBe(events);
  const first = await files();
  expect(first).toHaveLength(1);
  await remove(fixture, write);
  expect(await count(db, "webhook_event")).toBe(0);
  expect((await files()).filter((name) => name.startsWith("webhook_event"))).toEqual(first);
});

test("the backlog of one table does not hold up the others", async () => {
  const fixture = await makeMerchantFixture(chain, await own());
  const first = await insertPaymentRow(fixture.db, fixture);
  await sql`
    insert into payment select copy.* from payment p, generate_series(1, 300) as n,
      jsonb_populate_record(p, jsonb_build_object('id', left(p.id, -8) || lpad(to_hex(n), 8, '0'))) as copy
    where p.id = ${first}`.execute(fixture.db);
  await sql`update payment set state = 'expired'`.execute(fixture.db);
  await age(fixture);
  const batches: string[] = [];
  await remove(fixture, async ({ relation }) => void batches.push(relation));
  expect(batches).toEqual(["webhook_event", "event", "webhook_event", "event"]);
});

test("workers that remove at the same time remove each row once, and a row that cannot be removed holds no other up", async () => {
  const fixture = await makeMerchantFixture(chain, await own());
  const { db, deps } = fixture;
  const [bad, ...others] = await insertEnded(fixture, 6);
  for (const statement of [
    `create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`,
    `create trigger refuse before delete on webhook_event for each row when (old.payment_id = '${bad}') execute function refuse()`,
  ])
    await sql.raw(statement).execute(db);
  const removed: number[] = [];
  const record: ExportHistory = async ({ rows }) => void removed.push(...rows.map((row) => row.removed));
  const before = (await count(db, "webhook_event")) + (await count(db, "event"));
  await Promise.all(Array.from({ length: 4 }, () => remove({ deps }, record)));
  // A worker that finds a table locked leaves it to the next run.
  await remove({ deps }, record);
  expect(await listRetained(db, "webhook_event")).toEqual([bad]);
  expect(await listRetained(db, "event")).toEqual([bad]);
  expect(others).toHaveLength(5);
  const after = (await count(db, "webhook_event")) + (await count(db, "event"));
  expect(removed.reduce((sum, one) => sum + one, 0)).toBe(before - after);
  expect((await count(db, "webhook_event")) > 0).toBe(true);
});

test("the password of a worker removes neither the history of an unfinished payment nor that of the last week", async () => {
  const fixture = await makeMerchantFixture(chain, await own());
  const paymentId = await fixture.pay(await fundBuyer(chain));
  await payOut(fixture, paymentId);
  await deliverAll(fixture);
  const worker = new pg.Client({ connectionString: await roleUrl(fixture.databaseUrl, "worker") });
  await worker.connect();
  addCleanup(() => worker.end());
  await worker.query("set pay.removes_history = 'on'");
  for (const table of [
    "event",
    "webhook_event",
    "webhook_delivery",
    "payment",
    "transfer",
    "observation",
    "ledger_entry",
    "audit_entry",
  ])
    await expect(worker.query(`delete from ${table}`)).rejects.toMatchObject({ code: "42501" });
  // It may delete attempts, which are cleaned up when they were refused. Their moves stay.
  const readMoves = async () => (await worker.query("select id from event where machine = 'attempt' order by id")).rows;
  const moves = await readMoves();
  expect(moves).toHaveLength(2);
  await worker.query("begin");
  await worker.query("delete from attempt");
  expect(await readMoves()).toEqual(moves);
  await worker.query("rollback");
  const removed = async () => {
    const { rows } = await worker.query(
      "select relation, removed::int from remove_history('attempt', $1, 'infinity', false)",
      [[paymentId]],
    );
    return Object.fromEntries(rows.map((row) => [row.relation, row.removed]));
  };
  expect(await removed()).toEqual({ attempt: 0, event: 0 });
  await age(fixture, 3);
  expect(await removed()).toEqual({ attempt: 0, event: 0 });
  expect(await count(fixture.db, "attempt")).toBe(1);
  await age(fixture, 5);
  expect(await removed()).toEqual({ attempt: 1, event: 2 });
});
