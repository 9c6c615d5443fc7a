import { sql } from "kysely";
import { beforeEach, describe, expect, test } from "vitest";
import {
  selectDueTransfers,
  selectOldestDue,
  takeDue,
  takeDueChains,
  takeDueTransfers,
  takeEqualShares,
} from "../../../db/due.ts";
import { selectDueEndpoints, takeDueEndpoints } from "../../../db/queries/webhook-endpoints.ts";
import type { Db } from "../../../db/tables.ts";
import { insertMerchant, insertPaymentRow, insertTransferRow, someChain } from "../../support/insert-rows.ts";
import { openTestDb } from "../../support/open-test-db.ts";

const { db } = await openTestDb(20);
const now = new Date();
const ago = (ms: number) => new Date(now.getTime() - ms);
const later = (ms: number) => new Date(now.getTime() + ms);
const take = (at = now, limit = 500) => takeDue(db, { table: "payment", now: at, limit });

// Rows of earlier tests are not due.
beforeEach(() => db.updateTable("payment").set({ due_at: null }).execute());

describe("due rows", () => {
  test("each due row goes to one of several concurrent sweeps", async () => {
    const merchant = await insertMerchant(db);
    const ids = await Promise.all(
      Array.from({ length: 60 }, () => insertPaymentRow(db, merchant, { dueAt: ago(1_000) })),
    );
    const taken = (await Promise.all(Array.from({ length: 12 }, () => take(now, 7)))).flat();
    expect(new Set(taken.map(({ id }) => id)).size).toBe(taken.length);
    const rest = await take();
    expect([...taken, ...rest].map(({ id }) => id).sort()).toEqual(ids.toSorted());
    expect(await take()).toEqual([]);
  });

  test("a row is due again after its wait, with its retry number raised and the wait longer", async () => {
    const merchant = await insertMerchant(db);
    const id = await insertPaymentRow(db, merchant, { dueAt: now });
    const waits: number[] = [];
    let at = now;
    for (let round = 1; round <= 9; round += 1) {
      expect(await take(at)).toEqual([{ id, retry: round }]);
      const row = await db.selectFrom("payment").select("due_at").where("id", "=", id).executeTakeFirstOrThrow();
      waits.push(((row.due_at as Date).getTime() - at.getTime()) / 1000);
      expect(await take(new Date((row.due_at as Date).getTime() - 1))).toEqual([]);
      at = row.due_at as Date;
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  test("the sweep takes no row that is not due or has no due time", async () => {
    const merchant = await insertMerchant(db);
    await insertPaymentRow(db, merchant, { dueAt: later(1) });
    await insertPaymentRow(db, merchant, { dueAt: null });
    expect(await take()).toEqual([]);
  });
});

describe("a chain without a watcher", () => {
  test("a chain without a watcher goes to one sweep, with the block it waits for, and is due again after two seconds", async () => {
    const cursor = { chain: "eip155:77", number: 41, block_id: "0xa", final_number: 41, due_at: now };
    const none = { reached_head_at: null, owner: null, lease_until: null };
    // A failed try leaves its cursor.
    await db.deleteFrom("chain_cursor").where("chain", "=", cursor.chain).execute();
    await db
      .insertInto("chain_cursor")
      .values({ ...cursor, ...none })
      .execute();
    const chains = ["eip155:77"];
    const readClock = async () => (await sql<{ at: Date }>`select clock_timestamp() as at`.execute(db)).rows[0]?.at;
    const before = await readClock();
    // A chain that has left the networks file keeps its cursor, and no worker can watch it.
    expect(await takeDueChains(db, { chains: ["eip155:78"] })).toEqual([]);
    const taken = (await Promise.all(Array.from({ length: 8 }, () => takeDueChains(db, { chains })))).flat();
    const [first] = taken.toSorted((a, b) => a.retry - b.retry);
    expect(first).toEqual({ chain: "eip155:77", block: 42, retry: 1 });
    const { due_at } = await db.selectFrom("chain_cursor").select("due_at").executeTakeFirstOrThrow();
    const after = await readClock();
    // On a slow machine, the last sweep may begin two seconds after the first one.
    const times = 1 + ((after?.getTime() ?? 0) - (before?.getTime() ?? 0)) / 2_000;
    expect(taken.length).toBeLessThanOrEqual(times);
    expect(due_at?.getTime()).toBeGreaterThanOrEqual((before?.getTime() ?? 0) + 2_000);
    expect(due_at?.getTime()).toBeLessThanOrEqual((after?.getTime() ?? 0) + 2_000);
    await sql`update chain_cursor set due_at = clock_timestamp() + interval '1 minute'`.execute(db);
    expect(await takeDueChains(db, { chains })).toEqual([]);
    await sql`update chain_cursor set due_at = clock_timestamp()`.execute(db);
    expect(await takeDueChains(db, { chains })).toEqual([{ chain: "eip155:77", block: 42, retry: taken.length + 1 }]);
  });
});

test("the sweep takes the other chains while a worker that hangs has locked the cursor of one", async () => {
  await db.deleteFrom("chain_cursor").execute();
  await sql`insert into chain_cursor (chain, number, block_id, final_number, due_at)
    select 'eip155:' || n, 41, '0x', 40, clock_timestamp() - interval '1 second' from generate_series(78, 79) n`.execute(
    db,
  );
  const chains = ["eip155:78", "eip155:79"];
  await db.transaction().execute(async (hanging) => {
    await sql`update chain_cursor set number = number + 1 where chain = 'eip155:78'`.execute(hanging);
    const taken = db.transaction().execute(async (own) => {
      await sql`set local statement_timeout = 3000`.execute(own);
      return takeDueChains(own, { chains });
    });
    expect((await taken).map(({ chain }) => chain)).toEqual(["eip155:79"]);
  });
  expect((await takeDueChains(db, { chains })).map(({ chain }) => chain)).toEqual(["eip155:78"]);
});

const merchantsOf = async (ids: readonly string[]) => {
  const rows = await db
    .selectFrom("payment")
    .select(["id", "merchant_id"])
    .where("id", "in", [...ids])
    .execute();
  return new Set(rows.map((row) => row.merchant_id));
};

/** Inserts expired payments of a merchant, the first one due `seconds` ago. */
const flood = ({ accountId, merchantId }: { accountId: string; merchantId: string }, count: number, seconds: number) =>
  sql`insert into payment (id, account_id, merchant_id, mode, unit, value, state, created_at, updated_at, expires_at, due_at)
    select 'pay_' || md5(${merchantId} || n), ${accountId}, ${merchantId}, 'live', 'iso4217/USD', 100, 'requires_action', now(),
      now(), ${now}, ${now}::timestamptz - ${seconds} * interval '1 second' + n * interval '1 millisecond'
    from generate_series(1, ${sql.lit(count)}) n`.execute(db);

/** Inserts a waiting, due attempt on a chain for each of these payments. */
const confirmAll = async (paymentIds: readonly string[], chain: string) => {
  await sql`
    insert into payment_option (id, payment_id, account, chain, asset, token, payer, receiver, amount, authorization_nonce,
      valid_before, created_at)
    select 'opt_' || md5(id), id, 'a', ${chain}, 's', 't', 'p', 'r', 1, 'n', 1, now() from unnest(${paymentIds}::text[]) id`.execute(
    db,
  );
  await sql`
    insert into attempt (id, payment_id, option_id, chain, merchant_id, digest, results, state, created_at, due_at)
    select 'att_' || md5(id), id, 'opt_' || md5(id), ${chain}, merchant_id, '', '[]', 'waiting', now(), ${now}
    from payment where id = any(${paymentIds}::text[])`.execute(db);
};

const readPlan = async (statement: { compile: unknown; execute: unknown }, on: Db = db) => {
  const { rows } = await sql<Record<string, string>>`explain ${statement as never}`.execute(on);
  return rows.map((row) => Object.values(row)[0]).join("\n");
};

describe("a flood of one merchant's rows", () => {
  test("the first sweep gives every other merchant its share", async () => {
    const loud = await insertMerchant(db);
    const quiet = await Promise.all(Array.from({ length: 5 }, () => insertMerchant(db)));
    await flood(loud, 20_000, 3_600);
    for (const merchant of quiet) await insertPaymentRow(db, merchant, { dueAt: ago(1) });
    const taken = (await take()).map(({ id }) => id);
    expect(await merchantsOf(taken)).toEqual(new Set([loud, ...quiet].map(({ merchantId }) => merchantId)));
    expect(taken).toHaveLength(1_000);
    expect(new Set(taken).size).toBe(1_000);
  });

  test("the sweep takes a flood of payments through indexes", async () => {
    for (let index = 0; index < 50; index += 1) await flood(await insertMerchant(db), 400, 60);
    await sql`analyze payment`.execute(db);
    const oldest = await readPlan(selectOldestDue({ table: "payment", now, limit: 500 }));
    const shares = await readPlan(takeEqualShares({ table: "payment", now, limit: 500 }));
    expect(oldest).toContain("payment_due");
    expect(shares).toContain("payment_due_merchant");
    for (const plan of [oldest, shares]) expect(plan).not.toContain("Seq Scan");
  });
});

test("attempts on an unavailable chain leave the attempts on other chains and of other merchants their share", async () => {
  const [loud, quiet] = [await insertMerchant(db), await insertMerchant(db)];
  await flood(loud, 2_001, 60);
  const all = await db.selectFrom("payment").select("id").where("merchant_id", "=", loud.merchantId).execute();
  const [one = "", ...others] = all.map(({ id }) => id);
  await confirmAll(others, "eip155:1");
  // They are due later than all the others, so a sweep of only the oldest rows would never reach them.
  await confirmAll([one], "eip155:2");
  const theirs = await insertPaymentRow(db, quiet, { dueAt: null });
  await confirmAll([theirs], "eip155:1");
  await sql`update attempt set due_at = due_at - interval '1 minute' where payment_id = any(${others})`.execute(db);
  const taken = await takeDue(db, { table: "attempt", now, limit: 500 });
  const rows = await sql<{ chain: string; merchant_id: string }>`
    select distinct chain, merchant_id from attempt where id = any(${taken.map(({ id }) => id)})`.execute(db);
  expect(rows.rows).toHaveLength(3);
  await sql`analyze attempt`.execute(db);
  const plan = await readPlan(takeEqualShares({ table: "attempt", now, limit: 500 }));
  expect(plan).toContain("attempt_due_by_merchant");
  expect(plan).not.toContain("Seq Scan");
});

test("transfers of a chain that relays nothing leave those of other chains their share", async () => {
  const merchant = await insertMerchant(db);
  for (let index = 0; index < 8; index += 1) await insertTransferRow(db, merchant, { due_at: ago(60_000) });
  const other = await insertTransferRow(db, merchant, { asset: "eip155:5/erc20:0x00", due_at: ago(1) });
  const taken = await takeDueTransfers(db, { chains: [someChain, "eip155:5"], now, limit: 3 });
  expect(taken.filter(({ chain }) => chain === someChain)).toHaveLength(3);
  expect(taken.filter(({ chain }) => chain === "eip155:5")).toMatchObject([{ id: other.id }]);
  expect(await takeDueTransfers(db, { chains: ["eip155:6"], now, limit: 3 })).toEqual([]);
  const plan = await db.transaction().execute(async (own) => {
    await sql`set local enable_seqscan = off`.execute(own);
    return readPlan(selectDueTransfers({ chains: [someChain], now, limit: 3 }), own);
  });
  expect(plan).toContain("transfer_due");
});

/** Inserts a webhook endpoint of a new account with one pending delivery, which is due at `dueAt`. */
async function insertDueEndpoint(id: string, dueAt: Date, priority = 1): Promise<void> {
  const merchant = await insertMerchant(db);
  const paymentId = await insertPaymentRow(db, merchant, { dueAt: null });
  await sql`insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, created_at)
    values (${id}, ${merchant.accountId}, 'live', 'https://shop.example', true, 'k', '', now())`.execute(db);
  await sql`insert into webhook_delivery (event_id, endpoint_id, priority, at, due_at)
    select id, ${id}, ${priority}, now(), ${dueAt} from webhook_event where payment_id = ${paymentId}`.execute(db);
}

test("the webhook endpoints that have waited longest are served first", async () => {
  const waits = [3_000, 9_000, 1_000];
  for (const [index, ms] of waits.entries()) await insertDueEndpoint(`whe_${index}`, ago(ms), index);
  const takeOne = async () =>
    (await takeDueEndpoints(db, { now, retryAt: later(5_000), limit: 1 })).map(({ id }) => id)[0];
  expect([await takeOne(), await takeOne(), await takeOne(), await takeOne()]).toEqual([
    "whe_1",
    "whe_0",
    "whe_2",
    undefined,
  ]);
});

test("an endpoint whose jobs wait in their queue is enqueued ever more rarely, and one whose first job is lost after five seconds", async () => {
  await db.deleteFrom("webhook_delivery").execute();
  await insertDueEndpoint("whe_waits", ago(1_000));
  const times: number[] = [];
  for (let second = 0; second < 3_600; second += 1) {
    const taken = await takeDueEndpoints(db, {
      now: later(1_000 * second),
      retryAt: later(1_000 * second + 5_000),
      limit: 1,
    });
    if (taken.length > 0) times.push(second);
  }
  expect(times.slice(0, 4)).toEqual([0, 5, 10, 16]);
  expect(times.length).toBeLessThan(20);
  const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0));
  expect(Math.max(...waits)).toBe(600);
});

test("an endpoint is enqueued again after five seconds when the first job that it gets after an outage of Redis is lost too", async () => {
  await db.deleteFrom("webhook_delivery").execute();
  await insertDueEndpoint("whe_outage", ago(1_000));
  const take = async (ms: number) =>
    (await takeDueEndpoints(db, { now: later(ms), retryAt: later(ms + 5_000), limit: 1 })).length;
  expect(await take(0)).toBe(1);
  // No sweep runs for half an hour.
  const back = 30 * 60_000;
  expect([await take(back), await take(back + 4_000), await take(back + 5_000)]).toEqual([1, 0, 1]);
});

test("the sweep reads no webhook endpoint that was deleted over a day ago", async () => {
  const day = 24 * 60 * 60_000;
  await insertDueEndpoint("whe_recent", ago(1_000));
  await insertDueEndpoint("whe_old", ago(1_000));
  const remove = (id: string, at: Date) =>
    sql`update webhook_endpoint set deleted_at = ${at} where id = ${id}`.execute(db);
  await remove("whe_recent", ago(day - 1_000));
  await remove("whe_old", ago(day));
  const args = { now, retryAt: later(5_000), limit: 10 };
  expect((await takeDueEndpoints(db, args)).map(({ id }) => id)).toEqual(["whe_recent"]);
  await db.transaction().execute(async (own) => {
    // Without the triggers, which would write an audit entry for each.
    await sql`set local session_replication_role = replica`.execute(own);
    await sql`insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, created_at, deleted_at)
      select 'whe_gone' || n, (select min(id) from account), 'live', 'https://shop.example', false, 'k', '', now(), ${ago(2 * day)}
      from generate_series(1, 20000) n`.execute(own);
  });
  await sql`analyze webhook_endpoint`.execute(db);
  const plan = await readPlan(selectDueEndpoints(args));
  expect(plan).toContain("webhook_endpoint_deleted");
  expect(plan).not.toContain("Seq Scan on webhook_endpoint");
});
