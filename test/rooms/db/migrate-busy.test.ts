import { Migrator } from "kysely/migration";
import pg from "pg";
import { expect, test } from "vitest";
import { migrateDatabase } from "../../../db/migrate.ts";
import * as first from "../../../db/migrations/0001_first_payment.ts";
import { openDb } from "../../../db/open.ts";
import { atEnd } from "../../support/at-end.ts";
import { createDatabase, createEmptyDatabase } from "../../support/database.ts";
import { execute } from "../../support/sql.ts";
import { waitFor } from "../../support/wait-for.ts";

/** A session of somebody else, who works on the database while it is migrated. */
async function openSession(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, statement_timeout: 20_000 });
  client.on("error", () => undefined);
  await client.connect();
  atEnd(() => client.end());
  return client;
}

async function createOldDatabase(): Promise<string> {
  const url = await createEmptyDatabase();
  const db = openDb(url, { max: 2 });
  const provider = { getMigrations: async () => ({ "0001_first_payment": first }) };
  expect((await new Migrator({ db, provider }).migrateToLatest()).error).toBeUndefined();
  await db.destroy();
  return url;
}

/** True while a session of the migrator waits in a statement. */
async function isMigratorWaiting(url: string): Promise<boolean> {
  const [row] = await execute(
    url,
    `select count(*)::int as count from pg_stat_activity where datname = current_database()
      and application_name = 'pay-migrate' and wait_event_type = 'Lock'`,
  );
  return row?.count === 1;
}

const isValid = async (url: string, index: string) =>
  (await execute(url, `select indisvalid from pg_index where indexrelid = to_regclass('${index}')`))[0]?.indisvalid;

test("a migration that meets a long transaction lets other statements pass, and goes on when that has ended", async () => {
  const url = await createOldDatabase();
  const long = await openSession(url);
  await long.query("begin; select from payment");
  const waits: string[] = [];
  const migrated = migrateDatabase(url, (name) => waits.push(name));
  await waitFor(() => isMigratorWaiting(url), { within: 20_000 });
  const other = await openSession(url);
  // It stands behind the migration in the queue for the table.
  await other.query("select from payment");
  await waitFor(async () => waits.length > 0, { within: 20_000 });
  expect(waits[0]).toBe("0002_http_contract");
  await long.query("rollback");
  expect(await migrated).toContain("0002_http_contract");
});

test("a large index is built while transactions write its table, and keeps nobody from writing", async () => {
  const url = await createDatabase();
  await execute(url, "drop index ledger_entry_lost");
  const long = await openSession(url);
  await long.query("begin; lock table ledger_entry in row exclusive mode");
  const migrated = migrateDatabase(url);
  await waitFor(() => isMigratorWaiting(url), { within: 20_000 });
  const other = await openSession(url);
  await other.query("begin; lock table ledger_entry in row exclusive mode; commit");
  await long.query("commit");
  await migrated;
  expect(await isValid(url, "ledger_entry_lost")).toBe(true);
});

test("an index whose building was cut off is built anew, and one that is whole is left alone", async () => {
  const url = await createDatabase();
  const oid = async () => (await execute(url, "select 'ledger_entry_lost'::regclass::oid as oid"))[0]?.oid;
  const whole = await oid();
  await migrateDatabase(url);
  expect(await oid()).toBe(whole);
  await execute(url, "update pg_index set indisvalid = false where indexrelid = 'ledger_entry_lost'::regclass");
  await Promise.all([migrateDatabase(url), migrateDatabase(url)]);
  expect(await isValid(url, "ledger_entry_lost")).toBe(true);
  expect(await oid()).not.toBe(whole);
});
