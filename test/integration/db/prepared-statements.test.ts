import { sql } from "kysely";
import { expect, test } from "vitest";
import { anyOf } from "../../../db/any-of.ts";
import { beginAccumulating } from "../../../db/queries/accumulating-settlements.ts";
import { lockPaying } from "../../../db/queries/payment-moves.ts";
import { listPayments } from "../../../db/queries/payments.ts";
import { insertMerchant, insertPaymentRow } from "../../support/insert-rows.ts";
import { openTestDb } from "../../support/open-test-db.ts";

test("a statement that runs often is prepared, and every statement still works after a migration adds a column", async () => {
  // One connection, which keeps its prepared statements.
  const { db } = await openTestDb(1);
  const id = await insertPaymentRow(db, await insertMerchant(db), { state: "processing" });
  for (let run = 0; run < 10; run += 1) {
    expect(await listPayments(db, [id])).toHaveLength(1);
    expect(await lockPaying(db, [id])).toHaveLength(1);
  }
  const { rows } = await sql<{ statement: string }>`select statement from pg_prepared_statements`.execute(db);
  for (const part of ["for update of p", 'from "payment" where id = any'])
    expect(rows.filter(({ statement }) => statement.includes(part))).toHaveLength(1);
  await sql`alter table payment add column more text`.execute(db);
  expect(await listPayments(db, [id])).toMatchObject([{ id }]);
  expect(await lockPaying(db, [id])).toHaveLength(1);
});

test("a connection whose prepared statement a migration has made invalid fails once and is not used again", async () => {
  const { db } = await openTestDb(1);
  await sql`create table noted (id int, note int)`.execute(db);
  const read = () => sql`select note from noted where id = ${1}`.execute(db);
  for (let run = 0; run < 10; run += 1) await read();
  await sql`alter table noted alter column note type text`.execute(db);
  await expect(read()).rejects.toThrow("cached plan");
  expect(await read()).toMatchObject({ rows: [] });
});

test("payments accumulate however often the statement has run, also when Postgres plans it without its values", async () => {
  const { db } = await openTestDb(1);
  const { merchantId } = await insertMerchant(db);
  await sql`set plan_cache_mode = force_generic_plan`.execute(db);
  const at = new Date();
  const settlement = { merchantId, mode: "live" as const, asset: "eip155:1/erc20:0xa1", amount: 1n, dueAt: at };
  const ids = new Set<string>();
  for (let number = 1; number <= 10; number += 1)
    ids.add((await beginAccumulating(db, { ...settlement, id: `stl_${number}`, number }, at)).id);
  expect([...ids], "all of them are added to the first one").toEqual(["stl_1"]);
});

test("Postgres keeps the plan of a statement for one or two of many rows", async () => {
  const { db } = await openTestDb(1);
  await sql`create table kept as select n::text as id from generate_series(1, 20000) n`.execute(db);
  await sql`create unique index on kept (id)`.execute(db);
  await sql`analyze kept`.execute(db);
  for (let run = 0; run < 20; run += 1) await sql`select id from kept where id = ${anyOf(["1", "2"])}`.execute(db);
  const { rows } = await sql`select custom_plans::int, generic_plans::int from pg_prepared_statements`.execute(db);
  // Postgres always plans a statement anew for its first five runs.
  expect(rows).toEqual([{ custom_plans: 5, generic_plans: 11 }]);
});
