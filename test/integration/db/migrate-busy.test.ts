import { type Kysely, sql } from "kysely";
import pg from "pg";
import { expect, test } from "vitest";
import { type Migrations, migrateDatabase, type OurMigration, readMigrations } from "../../../db/migrate.ts";
import type { BlockingSession } from "../../../db/migration-lock.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { execute } from "../../support/execute-sql.ts";
import { createDatabase } from "../../support/test-database.ts";
import { waitFor } from "../../support/wait-for.ts";

const addColumn: OurMigration = {
  up: async (db: Kysely<unknown>) => void (await sql`alter table payment add column planted text`.execute(db)),
};
const addIndex: OurMigration = {
  up: async () => undefined,
  concurrentIndexes: { payment_planted: "on payment (reference_id) where reference_id = 'planted'" },
};

/** Returns the migrations of this release followed by a planted one. */
async function plant(migration: OurMigration): Promise<Migrations> {
  return { ...(await readMigrations()), "9999_planted": migration };
}

/** Opens another client's session, which works on the database while it is migrated. */
async function openSession(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, statement_timeout: 20_000 });
  client.on("error", () => undefined);
  await client.connect();
  addCleanup(() => client.end());
  return client;
}

/** Returns true while a session of the migrator waits for a lock. */
async function isMigratorWaiting(url: string): Promise<boolean> {
  const [row] = await execute(
    url,
    `select count(*)::int as count from pg_stat_activity where datname = current_database()
      and application_name = 'pay-migrate' and wait_event_type = 'Lock'`,
  );
  return row?.["count"] === 1;
}

/** Kysely's lock of migrations (`LOCK_ID` of its adapter for Postgres). */
const KYSELY_LOCK = "3853314791062309107";

test.each([
  ["the lock of migrations", "select pg_advisory_lock(hashtextextended('migrate', 0))", addColumn],
  ["the lock of Kysely", `select pg_advisory_lock(${KYSELY_LOCK})`, addColumn],
  ["a transaction on the table of a new index", "begin; lock table payment in row exclusive mode", addIndex],
])("a migration that another session keeps waiting by %s names that session", async (_name, statement, planted) => {
  const url = await createDatabase();
  const reader = await openSession(url);
  const { rows } = await reader.query("select pg_backend_pid() as pid, current_user as login");
  await reader.query(statement);
  const blocked: BlockingSession[] = [];
  const began = performance.now();
  const migrated = migrateDatabase(url, {
    migrations: await plant(planted),
    onBlocked: (session) => blocked.push(session),
  });
  await waitFor(() => blocked.length > 0, { within: 60_000, what: "the session that the migration waits for" });
  expect(performance.now() - began).toBeGreaterThan(4_900);
  expect(blocked).toEqual([{ ...rows[0], application: "", address: "127.0.0.1" }]);
  await reader.end();
  expect(await migrated).toEqual(["9999_planted"]);
});

test("Postgres ends the sessions of a migration a minute after their machine has vanished", async () => {
  const url = await createDatabase();
  const read = ["idle", "interval", "count"].map((name) => `current_setting('tcp_keepalives_${name}')`);
  const settings: unknown[] = [];
  const readSettings: OurMigration = {
    up: async (db: Kysely<unknown>) => {
      const { rows } = await sql.raw<object>(`select array[${read.join(", ")}] as seconds`).execute(db);
      settings.push(...rows);
    },
  };
  await migrateDatabase(url, { migrations: await plant(readSettings) });
  expect(settings).toEqual([{ seconds: ["30", "10", "3"] }]);
});

const readIndex = async (url: string) =>
  (
    await execute(
      url,
      "select indexrelid as oid, indisvalid as valid from pg_index where indexrelid = to_regclass('payment_planted')",
    )
  )[0];

test("a migration that meets a long transaction lets other statements pass and runs when the transaction has ended", async () => {
  const url = await createDatabase();
  const migrations = await plant(addColumn);
  const long = await openSession(url);
  await long.query("begin; select from payment");
  const waits: string[] = [];
  const migrated = migrateDatabase(url, { migrations, onWait: (name) => waits.push(name) });
  await waitFor(() => isMigratorWaiting(url), { within: 20_000 });
  const other = await openSession(url);
  // This statement queues behind the migration for the table.
  await other.query("select from payment");
  await waitFor(async () => waits.length > 0, { within: 20_000 });
  expect(waits[0]).toBe("9999_planted");
  await long.query("rollback");
  expect(await migrated).toEqual(["9999_planted"]);
});

const referToAttempts: OurMigration = {
  up: async (db: Kysely<unknown>) => {
    await sql`alter table payment add column planted text`.execute(db);
    await sql`create table planted (attempt_id text references attempt)`.execute(db);
  },
};

test("a migration that needs the tables of a request in another order gives way, and no request is ended as a deadlock", async () => {
  const url = await createDatabase();
  const request = await openSession(url);
  await request.query("begin; lock table attempt in row exclusive mode");
  const migrated = migrateDatabase(url, { migrations: await plant(referToAttempts) });
  await waitFor(() => isMigratorWaiting(url), { within: 20_000 });
  await request.query("select from payment");
  await request.query("commit");
  expect(await migrated).toEqual(["9999_planted"]);
});

test("a large index is built while transactions write to its table, and blocks no writer", async () => {
  const url = await createDatabase();
  const long = await openSession(url);
  await long.query("begin; lock table payment in row exclusive mode");
  const migrated = migrateDatabase(url, { migrations: await plant(addIndex) });
  await waitFor(() => isMigratorWaiting(url), { within: 20_000 });
  const other = await openSession(url);
  await other.query("begin; lock table payment in row exclusive mode; commit");
  await long.query("commit");
  await migrated;
  expect(await readIndex(url)).toMatchObject({ valid: true });
});

test("an index whose build was interrupted is built again, and a valid one is left alone", async () => {
  const url = await createDatabase();
  const migrations = await plant(addIndex);
  await migrateDatabase(url, { migrations });
  const valid = await readIndex(url);
  await migrateDatabase(url, { migrations });
  expect(await readIndex(url)).toEqual(valid);
  await execute(url, "update pg_index set indisvalid = false where indexrelid = 'payment_planted'::regclass");
  await Promise.all([migrateDatabase(url, { migrations }), migrateDatabase(url, { migrations })]);
  expect(await readIndex(url)).toMatchObject({ valid: true });
  expect((await readIndex(url))?.["oid"]).not.toBe(valid?.["oid"]);
});

test("an index that a run did not get to build is built by the next run", async () => {
  const url = await createDatabase();
  const migrations = await plant(addIndex);
  await migrateDatabase(url, { migrations });
  await execute(url, "drop index payment_planted");
  expect(await migrateDatabase(url, { migrations })).toEqual([]);
  expect(await readIndex(url)).toMatchObject({ valid: true });
});
