import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { moveRows } from "../../../../db/moves.ts";
import { addToAccumulating, beginAccumulating } from "../../../../db/queries/accumulating-settlements.ts";
import {
  blockQueue,
  listQueuedIds,
  listQueuedRows,
  type Obstacle,
  type PayoutKind,
  restQueues,
  selectDueQueues,
  type TakenQueue,
  takeDueQueues,
  wakeSettlements,
} from "../../../../db/queries/payout-queue.ts";
import { insertRefund } from "../../../../db/queries/refunds.ts";
import type { Db } from "../../../../db/tables.ts";
import { newId } from "../../../../payments/ids.ts";
import {
  insertMerchant,
  insertOptionRow,
  insertPaymentRow,
  insertSettlementRow,
  someAsset,
  someChain,
} from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { waitFor } from "../../../support/wait-for.ts";

const { db } = await openTestDb(20);
const now = new Date();
const later = (ms: number) => new Date(now.getTime() + ms);
type Merchant = Awaited<ReturnType<typeof insertMerchant>>;

const take = (kind: PayoutKind = "settlement", at = now, chains: string[] = [someChain], limit = 500) =>
  takeDueQueues(db, { kind, chains, now: at, limit });
const queueOf = ({ merchantId }: Merchant, kind: PayoutKind = "settlement") =>
  db
    .selectFrom("payout_queue")
    .selectAll()
    .where("merchant_id", "=", merchantId)
    .where("kind", "=", kind)
    .executeTakeFirstOrThrow();
const keyOf = ({ merchantId }: Merchant, kind: PayoutKind = "settlement") => ({
  ...{ kind, merchant_id: merchantId, asset: someAsset, chain: someChain },
});

async function insertDestination(on: Db, { merchantId }: Merchant, minimum: bigint | null = null): Promise<void> {
  await on
    .insertInto("settlement_destination")
    .values({
      id: newId("crypto", new Date()),
      merchant_id: merchantId,
      asset: someAsset,
      destination: `${someChain}:0x1`,
      accumulation_ms: 1_000,
      accumulation_amount: null,
      minimum,
      created_at: now,
      updated_at: now,
    })
    .execute();
}

async function insertRefundRow(on: Db, { merchantId, accountId }: Merchant): Promise<string> {
  const id = newId("rfnd", new Date());
  const payment_id = await insertPaymentRow(on, { merchantId, accountId }, { dueAt: null });
  await insertOptionRow(on, payment_id, "eip3009");
  await on
    .updateTable("payment")
    .set({ option_id: `opt_${payment_id}` })
    .where("id", "=", payment_id)
    .execute();
  await insertRefund(on, {
    id,
    payment_id,
    exception_id: null,
    merchant_id: merchantId,
    number: 1,
    asset: someAsset,
    amount: 1n,
    receiver: "0x1",
    owed_asset: null,
    owed_amount: null,
    state: "due",
    created_at: now,
    due_at: now,
  });
  return id;
}

describe("a payout queue", () => {
  test("a queue is one row for any number of settlements, and goes to one sweep", async () => {
    const merchant = await insertMerchant(db);
    for (let number = 1; number <= 3; number += 1) await insertSettlementRow(db, merchant, { number, dueAt: now });
    const taken = (await Promise.all(Array.from({ length: 8 }, () => take()))).flat();
    expect(taken).toMatchObject([keyOf(merchant)]);
    const [ids] = await listQueuedIds(db, {
      kind: "settlement",
      queues: taken.map((queue) => ({ ...queue, limit: 2 })),
      now,
    });
    expect(ids).toHaveLength(2);
    // A lost job is replaced.
    expect(await take("settlement", later(4_999))).toEqual([]);
    expect(await take("settlement", later(5_000))).toMatchObject([keyOf(merchant)]);
  });

  test("a queue rests when it is empty, and not when a row was added meanwhile", async () => {
    const merchant = await insertMerchant(db);
    const id = await insertSettlementRow(db, merchant, { dueAt: later(-1) });
    const [taken] = (await take()).filter(({ merchant_id: merchantId }) => merchantId === merchant.merchantId) as [
      TakenQueue,
    ];
    await insertSettlementRow(db, merchant, { number: 2, dueAt: now });
    await db.updateTable("settlement").set({ due_at: null }).where("id", "=", id).execute();
    await restQueues(db, { kind: "settlement", queues: [taken] });
    expect((await queueOf(merchant)).due_at).not.toBeNull();
    const [retaken] = (await take()).filter(({ merchant_id: merchantId }) => merchantId === merchant.merchantId) as [
      TakenQueue,
    ];
    await db.updateTable("settlement").set({ due_at: null }).where("merchant_id", "=", merchant.merchantId).execute();
    await restQueues(db, { kind: "settlement", queues: [retaken] });
    expect((await queueOf(merchant)).due_at).toBeNull();
  });

  test("a queue does not rest while a row is being committed", async () => {
    const merchant = await insertMerchant(db);
    const id = await insertSettlementRow(db, merchant, { dueAt: later(-1) });
    const [taken] = (await take()).filter(({ merchant_id: merchantId }) => merchantId === merchant.merchantId) as [
      TakenQueue,
    ];
    await db.updateTable("settlement").set({ due_at: null }).where("id", "=", id).execute();
    const isWaiting = async () => {
      const { rows } = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
      return rows.length > 0;
    };
    const resting = await db.transaction().execute(async (open) => {
      await insertSettlementRow(open, merchant, { number: 2, dueAt: now });
      const rest = restQueues(db, { kind: "settlement", queues: [taken] });
      await waitFor(isWaiting, { within: 20_000, what: "the update waits for the queue's row" });
      return { rest };
    });
    await resting.rest;
    expect((await queueOf(merchant)).due_at).not.toBeNull();
  });

  test("queues are put to rest in the order in which bookings wake them, so that the two do not deadlock", async () => {
    const merchants = [await insertMerchant(db), await insertMerchant(db)];
    const [first, second] = merchants.sort((a, b) => (a.merchantId < b.merchantId ? -1 : 1)) as [Merchant, Merchant];
    const ids: string[] = [];
    for (const merchant of [second, first]) ids.push(await insertSettlementRow(db, merchant, { dueAt: later(-1) }));
    const all = await take();
    const queues = [second, first].flatMap(({ merchantId }) => all.filter((one) => one.merchant_id === merchantId));
    await db.updateTable("settlement").set({ due_at: null }).where("id", "in", ids).execute();
    const isWaiting = async () => {
      const { rows } = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
      return rows.length > 0;
    };
    const { resting } = await db.transaction().execute(async (booking) => {
      await wakeSettlements(booking, { merchantId: first.merchantId, asset: someAsset });
      const resting = restQueues(db, { kind: "settlement", queues });
      await waitFor(isWaiting, { within: 20_000, what: "the update waits for the row of the first queue" });
      await wakeSettlements(booking, { merchantId: second.merchantId, asset: someAsset });
      return { resting };
    });
    await resting;
    for (const merchant of [first, second]) expect((await queueOf(merchant)).due_at).not.toBeNull();
  });

  test("queues of other chains are left alone, and each chain has its own share", async () => {
    const asset = `eip155:5/erc20:0x${"b2".repeat(20)}`;
    for (let index = 0; index < 20; index += 1)
      await insertSettlementRow(db, await insertMerchant(db), { dueAt: later(-60_000) });
    const other = await insertMerchant(db);
    await insertSettlementRow(db, other, { asset, dueAt: later(-1) });
    expect(await take("settlement", now, ["eip155:6"])).toEqual([]);
    const taken = await take("settlement", now, [someChain, "eip155:5"], 5);
    expect(taken.filter(({ chain }) => chain === someChain)).toHaveLength(5);
    expect(taken.filter(({ chain }) => chain === "eip155:5")).toMatchObject([{ merchant_id: other.merchantId }]);
  });
});

/** What removes an obstacle, each in its own transaction. */
const wakes: [Obstacle, PayoutKind, string, (merchant: Merchant) => Promise<(on: Db) => Promise<unknown>>][] = [
  ["no_destination", "settlement", "a destination is registered", async (one) => (on) => insertDestination(on, one)],
  [
    "not_served",
    "settlement",
    "the destination is changed",
    async (one) => {
      await insertDestination(db, one);
      return (on) =>
        on
          .updateTable("settlement_destination")
          .set({ destination: `${someChain}:0x2` })
          .where("merchant_id", "=", one.merchantId)
          .execute();
    },
  ],
  [
    "held",
    "settlement",
    "the merchant is released",
    async ({ merchantId }) => {
      const hold = (on: Db, at: Date | null) =>
        on.updateTable("merchant").set({ payouts_held_at: at }).where("id", "=", merchantId).execute();
      await hold(db, now);
      return (on) => hold(on, null);
    },
  ],
  [
    "refund_pending",
    "settlement",
    "the refund begins",
    async (one) => {
      const id = await insertRefundRow(db, one);
      return (on) => moveRows(on, "refund", { ids: [id], from: "due", to: "paying", at: now, set: { due_at: null } });
    },
  ],
  [
    "minimum",
    "settlement",
    "the minimum is reached",
    async (one) => {
      await insertDestination(db, one, 5n);
      const { merchantId } = one;
      const row = {
        id: newId("stl", new Date()),
        merchantId,
        mode: "live" as const,
        asset: someAsset,
        number: 9,
        amount: 1n,
      };
      const { id } = await beginAccumulating(db, { ...row, dueAt: now }, now);
      return (on) => addToAccumulating(on, { additions: [{ id, amount: 4n }], limit: null, at: now });
    },
  ],
  [
    "minimum",
    "settlement",
    "a settlement that reaches the minimum begins to accumulate",
    async (one) => {
      await insertDestination(db, one, 5n);
      const { merchantId } = one;
      const row = { merchantId, mode: "live" as const, asset: someAsset, dueAt: now };
      await beginAccumulating(db, { ...row, id: newId("stl", now), number: 8, amount: 1n }, now);
      const other = { ...row, id: newId("stl", now), number: 9, amount: 5n, converted: true };
      return (on) => beginAccumulating(on, other, now);
    },
  ],
  [
    "balance_short",
    "refund",
    "the balance is credited",
    async (one) => {
      await insertRefundRow(db, one);
      const row = { merchant_id: one.merchantId, asset: someAsset, amount: 0n };
      await db.insertInto("merchant_balance").values(row).execute();
      return (on) =>
        on.updateTable("merchant_balance").set({ amount: 1n }).where("merchant_id", "=", one.merchantId).execute();
    },
  ],
];

describe.each(wakes)("a queue that is blocked by %s (%s)", (obstacle, kind, event, prepare) => {
  const blockable = async () => {
    const merchant = await insertMerchant(db);
    await insertSettlementRow(db, merchant, { dueAt: now });
    const free = await prepare(merchant);
    const { version } = await queueOf(merchant, kind);
    const block = () => blockQueue(db, { ...keyOf(merchant, kind), version, obstacle, now });
    return { merchant, free, block };
  };
  const isTaken = async (merchant: Merchant, at: Date) =>
    (await take(kind, at)).some(({ merchant_id: merchantId }) => merchantId === merchant.merchantId);

  test("a blocked queue is not taken until five minutes have passed, and then every ten minutes", async () => {
    const { merchant, block } = await blockable();
    expect(await block()).toBe(true);
    expect(await queueOf(merchant, kind)).toMatchObject({ blocked_by: obstacle, blocked_at: now });
    expect(await isTaken(merchant, later(299_999))).toBe(false);
    expect(await isTaken(merchant, later(300_000))).toBe(true);
  });

  test(`a blocked queue is taken at once when ${event}`, async () => {
    const { merchant, free, block } = await blockable();
    await block();
    await free(db);
    expect(await queueOf(merchant, kind)).toMatchObject({ blocked_by: null });
    expect(await isTaken(merchant, now)).toBe(true);
  });

  test("a queue is not blocked when the obstacle was removed after it was seen and before it was stored", async () => {
    const { merchant, free, block } = await blockable();
    await free(db);
    expect(await block()).toBe(false);
    expect(await isTaken(merchant, later(60_000))).toBe(true);
  });

  test("a queue is not blocked when the obstacle's removal commits while the obstacle is stored", async () => {
    const { merchant, free, block } = await blockable();
    const freed = Promise.withResolvers<void>();
    const commit = Promise.withResolvers<void>();
    const freeing = db.transaction().execute(async (open) => {
      await free(open);
      freed.resolve();
      await commit.promise;
      // Triggers that fire at commit fire here, before the update can lock the queue.
      await sql`set constraints all immediate`.execute(open);
    });
    await freed.promise;
    const blocking = block();
    commit.resolve();
    await Promise.all([freeing, blocking]);
    expect((await queueOf(merchant, kind)).blocked_by).toBeNull();
  });
});

test("new rows leave a blocked queue blocked, unless only larger payouts were blocked", async () => {
  const [without, short] = [await insertMerchant(db), await insertMerchant(db)];
  for (const [merchant, obstacle] of [
    [without, "no_destination"],
    [short, "inventory_short"],
  ] as const) {
    await insertSettlementRow(db, merchant, { dueAt: now });
    const { version } = await queueOf(merchant);
    await blockQueue(db, { ...keyOf(merchant), version, obstacle, now });
    await insertSettlementRow(db, merchant, { number: 2, dueAt: now });
  }
  const taken = (await take()).map(({ merchant_id: merchantId }) => merchantId);
  expect(taken).toContain(short.merchantId);
  expect(taken).not.toContain(without.merchantId);
});

test("rows name their queue, also a refund of money that belonged to no merchant", async () => {
  const merchant = await insertMerchant(db);
  const id = await insertSettlementRow(db, merchant, { dueAt: now });
  const rows = await listQueuedRows(db, { kind: "settlement", ids: [id] });
  expect(rows).toMatchObject([{ id, state: "due", is_fresh: true, ...keyOf(merchant) }]);
  await sql`insert into ledger_group (kind, subject, at) values ('unmatched', 'x', now())`.execute(db);
  const group = await db.selectFrom("ledger_group").select("id").executeTakeFirstOrThrow();
  const refund = newId("rfnd", new Date());
  await insertRefund(db, {
    id: refund,
    payment_id: null,
    exception_id: group.id,
    merchant_id: null,
    number: 1,
    asset: someAsset,
    amount: 1n,
    receiver: "0x1",
    owed_asset: null,
    owed_amount: null,
    state: "due",
    created_at: now,
    due_at: now,
  });
  const [taken] = (await take("refund")).filter(({ merchant_id: merchantId }) => merchantId === "");
  if (!taken) throw new Error("the refund's queue was not taken");
  expect(await listQueuedIds(db, { kind: "refund", queues: [{ ...taken, limit: 9 }], now })).toEqual([[refund]]);
});

test("one queue among 20,000 is taken through an index", async () => {
  await sql`
    insert into payout_queue (kind, merchant_id, asset, chain, due_at)
    select 'settlement', 'mrch_' || n, ${someAsset}, ${someChain}, now() + n * interval '1 second'
    from generate_series(1, 20000) n`.execute(db);
  await sql`analyze payout_queue`.execute(db);
  const statement = selectDueQueues({ kind: "settlement", chains: [someChain], now, limit: 500 });
  const { rows } = await sql<Record<string, string>>`explain ${statement}`.execute(db);
  const plan = rows.map((row) => Object.values(row)[0]).join("\n");
  expect(plan).toContain("Index Scan using payout_queue_due");
  expect(plan).not.toContain("Seq Scan");
});
