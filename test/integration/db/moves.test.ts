import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { moveRows } from "../../../db/moves.ts";
import { insertMerchant, insertPaymentRow } from "../../support/insert-rows.ts";
import { openTestDb } from "../../support/open-test-db.ts";
import { waitFor } from "../../support/wait-for.ts";

const { db } = await openTestDb(24);
const merchant = await insertMerchant(db);
const eventsOf = (id: string) => db.selectFrom("event").selectAll().where("subject", "=", id).orderBy("id").execute();
const stateOf = (id: string) =>
  db.selectFrom("payment").select(["state", "state_version"]).where("id", "=", id).executeTakeFirstOrThrow();
/** Counts the statements of this database that wait for a lock. */
const countWaiting = async () => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
  return rows[0]?.count ?? 0;
};

describe("moving rows from one state to another", () => {
  test("one of twenty racing moves wins, writes one event and raises the version by one", async () => {
    const id = await insertPaymentRow(db, merchant);
    const race = Array.from({ length: 20 }, (_, racer) =>
      moveRows(db, "payment", {
        ids: [id],
        from: "requires_action",
        to: racer % 2 === 0 ? "processing" : "expired",
        at: new Date(),
        detail: { racer },
      }).then((moved) => ({ racer, moved })),
    );
    const winners = (await Promise.all(race)).filter(({ moved }) => moved.length > 0);
    expect(winners).toHaveLength(1);
    const events = await eventsOf(id);
    expect(events.map((event) => event.from_state)).toEqual(["new", "requires_action"]);
    expect(events[1]?.detail).toEqual({ racer: winners[0]?.racer });
    expect(await stateOf(id)).toEqual({ state: events[1]?.to_state, state_version: 1 });
  });

  test("moves of overlapping rows in opposite orders do not deadlock, and each row moves once", async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, () => insertPaymentRow(db, merchant)));
    const move = (order: string[]) =>
      moveRows(db, "payment", { ids: order, from: "requires_action", to: "processing", at: new Date() });
    // One transaction holds a row that every move needs, so each move locks the rows it can and waits.
    const shared = ids.slice(10).toSorted()[10];
    const held = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const holding = db.transaction().execute(async (trx) => {
      await sql`select from payment where id = ${shared} for update`.execute(trx);
      locked.resolve();
      await held.promise;
    });
    await locked.promise;
    const orders = [ids, ids.toReversed(), ids.toSorted(), ids.slice(10)];
    const racers = Array.from({ length: 16 }, (_, racer) => orders[racer % orders.length] ?? []);
    const moving = Promise.all(racers.map(move));
    await waitFor(async () => (await countWaiting()) === racers.length, {
      within: 20_000,
      what: "every move waits for the lock",
    });
    held.resolve();
    await holding;
    expect((await moving).flat().sort()).toEqual(ids.toSorted());
  });

  test("a row that fails an additional guard stays where it is, and the move reports that", async () => {
    const id = await insertPaymentRow(db, merchant);
    const where = sql`expires_at <= ${new Date()}`;
    const at = new Date();
    expect(await moveRows(db, "payment", { ids: [id], from: "requires_action", to: "expired", at, where })).toEqual([]);
    expect(await stateOf(id)).toMatchObject({ state: "requires_action" });
    expect(await eventsOf(id)).toHaveLength(1);
  });

  test("a move that is rolled back leaves no event", async () => {
    const id = await insertPaymentRow(db, merchant);
    const undone = db.transaction().execute(async (trx) => {
      await moveRows(trx, "payment", { ids: [id], from: "requires_action", to: "processing", at: new Date() });
      throw new Error("undo");
    });
    await expect(undone).rejects.toThrow("undo");
    expect(await eventsOf(id)).toHaveLength(1);
  });
});

describe("constraints of Postgres", () => {
  test("Postgres refuses a move that is not in the table of states, and the row stays", async () => {
    const id = await insertPaymentRow(db, merchant);
    const move = { ids: [id], from: "requires_action", to: "failed" as never, at: new Date() } as const;
    await expect(moveRows(db, "payment", move)).rejects.toMatchObject({ code: "23503" });
    expect(await stateOf(id)).toMatchObject({ state: "requires_action" });
  });

  test.each([
    ["update event set to_state = 'succeeded'"],
    ["delete from event"],
    ["truncate event"],
    ["update ledger_group set kind = 'x'"],
    ["delete from ledger_group"],
    ["truncate ledger_group cascade"],
    ["update ledger_entry set amount = 1"],
    ["delete from ledger_entry"],
    ["truncate ledger_entry"],
  ])('Postgres refuses "%s", even by hand', async (statement) => {
    await expect(sql.raw(statement).execute(db)).rejects.toThrow(/is append only/);
  });

  test("Postgres refuses a succeeded payment that does not name what paid it", async () => {
    const id = await insertPaymentRow(db, merchant, { state: "processing" });
    const bare = moveRows(db, "payment", { ids: [id], from: "processing", to: "succeeded", at: new Date() });
    await expect(bare).rejects.toMatchObject({ code: "23514" });
  });
});
