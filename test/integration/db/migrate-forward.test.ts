import { type Kysely, sql } from "kysely";
import { expect, test } from "vitest";
import { migrateDatabase, type OurMigration, readMigrations } from "../../../db/migrate.ts";
import { listTransitions } from "../../../db/states.ts";
import { execute } from "../../support/execute-sql.ts";
import { createDatabase } from "../../support/test-database.ts";

/** A migration of a later release: it adds a column that is computed from the rows of the release before. */
const later: OurMigration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table payment add column moved_at timestamptz`.execute(db);
    await sql`update payment set moved_at = coalesce((select max(at) from event where subject = payment.id), created_at)`.execute(
      db,
    );
    await sql`alter table payment alter column moved_at set not null`.execute(db);
  },
};
const plant = async () => ({ ...(await readMigrations()), "9999_later": later });

/** Inserts an account, a merchant and two payments, of which the second has moved on. */
async function insertPayments(url: string): Promise<void> {
  await execute(
    url,
    "insert into account (id, name, created_at) values ('acct_1', 'Shop', now())",
    `insert into merchant (id, account_id, mode, name, email, created_at)
      values ('mrch_1', 'acct_1', 'live', 'Shop', 'shop@example.test', now())`,
    `insert into payment (id, account_id, merchant_id, mode, unit, value, state, created_at, updated_at, expires_at)
      select id, 'acct_1', 'mrch_1', 'live', 'iso4217/USD', 100, 'requires_action', '2026-01-01', '2026-01-01', '2026-01-02'
      from unnest(array['pay_1', 'pay_2']) id`,
    `insert into event (machine, subject, from_state, to_state, at)
      values ('payment', 'pay_2', 'requires_action', 'processing', '2026-01-03')`,
  );
}

test("a database of an earlier release, with payments in it, is migrated to a later one", async () => {
  const url = await createDatabase();
  await insertPayments(url);
  expect(await migrateDatabase(url, { migrations: await plant() })).toEqual(["9999_later"]);
  expect(await execute(url, "select id, moved_at from payment order by id")).toEqual([
    { id: "pay_1", moved_at: new Date("2026-01-01T00:00:00Z") },
    { id: "pay_2", moved_at: new Date("2026-01-03T00:00:00Z") },
  ]);
});

test("moves that a release adds are inserted, and moves that it no longer has are kept", async () => {
  const url = await createDatabase();
  await execute(
    url,
    "delete from transition where machine = 'payment' and from_state = 'processing' and to_state = 'failed'",
    "insert into transition values ('payment', 'retired', 'succeeded')",
  );
  await migrateDatabase(url);
  expect(await execute(url, "select count(*)::int as count from transition")).toEqual([
    { count: listTransitions().length + 1 },
  ]);
});

test("a failing migration leaves nothing behind and its error is thrown", async () => {
  const url = await createDatabase();
  await insertPayments(url);
  const failing: OurMigration = {
    async up(db: Kysely<unknown>) {
      await sql`alter table payment add column planted text`.execute(db);
      await sql`alter table payment alter column planted set not null`.execute(db);
    },
  };
  const migrations = { ...(await readMigrations()), "9999_failing": failing };
  await expect(migrateDatabase(url, { migrations })).rejects.toThrow(/contains null values/);
  const columns = "select from information_schema.columns where table_name = 'payment' and column_name = 'planted'";
  expect(await execute(url, columns)).toEqual([]);
  expect(await migrateDatabase(url)).toEqual([]);
});
