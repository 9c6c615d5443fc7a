import { sql } from "kysely";
import { expect, test } from "vitest";
import {
  addToAccumulating,
  beginAccumulating,
  closeAccumulating,
} from "../../../../db/queries/accumulating-settlements.ts";
import { insertMerchant, someAsset } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { waitFor } from "../../../support/wait-for.ts";

const { db } = await openTestDb();

test("settlements of several merchants that are closed and a booking that adds to them meanwhile do not deadlock", async () => {
  const at = new Date();
  const insert = async (id: string) => {
    const { merchantId } = await insertMerchant(db);
    const row = { id, merchantId, mode: "live" as const, asset: someAsset, number: 1, amount: 1n, dueAt: at };
    await beginAccumulating(db, row, at);
  };
  // The booking locks them in the order of their merchants, which is not that of their ids.
  await insert("stl_b");
  await insert("stl_a");
  const add = (id: string) => ({ additions: [{ id, amount: 1n }], limit: null, at });
  const isWaiting = async () => {
    const { rows } = await sql`select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
    return rows.length > 0;
  };
  const closing = await db.transaction().execute(async (booking) => {
    await addToAccumulating(booking, add("stl_b"));
    const closing = closeAccumulating(db, ["stl_a", "stl_b"], at).then(
      () => "closed",
      (error: unknown) => error,
    );
    await waitFor(isWaiting, { within: 20_000, what: "a lock" });
    await addToAccumulating(booking, add("stl_a"));
    return { closing };
  });
  expect(await closing.closing).toBe("closed");
  const rows = await db.selectFrom("settlement").select(["id", "amount", "state"]).orderBy("id").execute();
  expect(rows).toMatchObject([{ id: "stl_a" }, { id: "stl_b", amount: 2n, state: "due" }]);
});
