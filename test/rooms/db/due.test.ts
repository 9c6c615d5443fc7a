import { sql } from "kysely";
import { beforeEach, describe, expect, test } from "vitest";
import { takeDue, takeDueChains } from "../../../db/due.ts";
import { openTestDb } from "../../support/open-db.ts";
import { insertMerchant, insertPaymentRow } from "../../support/rows.ts";

const { db } = await openTestDb(20);
const now = new Date();
const ago = (ms: number) => new Date(now.getTime() - ms);
const later = (ms: number) => new Date(now.getTime() + ms);
const take = (at = now, limit = 500, graceMs = 0) => takeDue(db, { table: "payment", now: at, limit, graceMs });

// What an earlier test wrote owes nobody anything.
beforeEach(() => db.updateTable("payment").set({ due_at: null }).execute());

describe("rows whose job is owed", () => {
  test("are each given to one sweep, however many run at once", async () => {
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

  test("come back when their next time has passed, with the number of the ring raised and the wait longer", async () => {
    const merchant = await insertMerchant(db);
    const id = await insertPaymentRow(db, merchant, { dueAt: now });
    const waits: number[] = [];
    let at = now;
    for (let round = 1; round <= 9; round += 1) {
      expect(await take(at)).toEqual([{ id, again: round }]);
      const row = await db.selectFrom("payment").select("due_at").where("id", "=", id).executeTakeFirstOrThrow();
      waits.push(((row.due_at as Date).getTime() - at.getTime()) / 1000);
      expect(await take(new Date((row.due_at as Date).getTime() - 1))).toEqual([]);
      at = row.due_at as Date;
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  test("are none that are not due, owe nothing, or are within the grace of the job that was rung for them", async () => {
    const merchant = await insertMerchant(db);
    await insertPaymentRow(db, merchant, { dueAt: later(1) });
    await insertPaymentRow(db, merchant, { dueAt: null });
    const graced = await insertPaymentRow(db, merchant, { dueAt: ago(4_999) });
    expect(await take(now, 500, 5_000)).toEqual([]);
    expect(await take(later(1), 500, 5_000)).toEqual([{ id: graced, again: 1 }]);
  });
});

describe("a chain that nobody watches", () => {
  test("is given to one sweep, with the block it waits for, and again after two seconds", async () => {
    const cursor = { chain: "eip155:77", number: 41, hash: "0xa", final_number: 41, due_at: now };
    const none = { reached_head_at: null, owner: null, lease_until: null };
    await db
      .insertInto("chain_cursor")
      .values({ ...cursor, ...none })
      .execute();
    const chains = ["eip155:77"];
    // A chain that has left the networks file keeps its cursor, and nobody can watch it.
    expect(await takeDueChains(db, { chains: ["eip155:78"] })).toEqual([]);
    const taken = (await Promise.all(Array.from({ length: 8 }, () => takeDueChains(db, { chains })))).flat();
    expect(taken).toEqual([{ chain: "eip155:77", block: 42, again: 1 }]);
    expect(await takeDueChains(db, { chains })).toEqual([]);
    const { rows } = await sql<{ left: number }>`
      select extract(epoch from due_at - clock_timestamp())::float8 as left from chain_cursor`.execute(db);
    expect(rows[0]?.left).toBeGreaterThan(0);
    expect(rows[0]?.left).toBeLessThanOrEqual(2);
    await sql`update chain_cursor set due_at = clock_timestamp()`.execute(db);
    expect(await takeDueChains(db, { chains })).toEqual([{ chain: "eip155:77", block: 42, again: 2 }]);
  });
});
