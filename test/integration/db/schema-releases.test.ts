import { type Kysely, sql } from "kysely";
import { pino } from "pino";
import { expect, test } from "vitest";
import { watchSchema } from "../../../db/check-schema.ts";
import { dumpSchema } from "../../../db/dump-schema.ts";
import { type Migrations, migrateDatabase, readMigrations } from "../../../db/migrate.ts";
import { migrationNames } from "../../../db/migration-names.ts";
import { openDb } from "../../../db/open.ts";
import { highestVersion } from "../../../db/schema-version.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { execute } from "../../support/execute-sql.ts";
import { createDatabase, createEmptyDatabase } from "../../support/test-database.ts";

/** Returns the migrations of the release that comes `releases` after this one. */
async function migrationsAfter(releases: number): Promise<Migrations> {
  const later = Array.from({ length: releases }, (_, index) => {
    const version = highestVersion(migrationNames) + index + 1;
    const up = async (db: Kysely<unknown>) =>
      void (await sql.raw(`alter table payment add column added_${index} text`).execute(db));
    return [`${String(version).padStart(4, "0")}_later`, { up }] as const;
  });
  return { ...(await readMigrations()), ...Object.fromEntries(later) };
}

/** Opens what a process checks for its readiness, and the messages that it logs. */
function openCheck(url: string) {
  const messages: string[] = [];
  const db = openDb(url, { max: 1 });
  addCleanup(() => db.destroy());
  const log = pino({}, { write: (line: string) => void messages.push(JSON.parse(line).msg) });
  return { isSchemaReady: watchSchema(db, log), messages };
}

test("after a migration of the next release, this release still starts, and its `migrate` changes nothing", async () => {
  const url = await createDatabase();
  await migrateDatabase(url, { migrations: await migrationsAfter(1) });
  await execute(url, "grant select (added_0) on payment to pay_reader", "revoke select on merchant from pay_reader");
  const before = await dumpSchema(url);
  const privileges =
    "select privilege_type, table_name from information_schema.table_privileges where grantee = 'pay_reader'";
  const granted = await execute(url, privileges);
  expect(await migrateDatabase(url)).toEqual([]);
  expect(await dumpSchema(url)).toBe(before);
  expect(await execute(url, privileges)).toEqual(granted);
  const { isSchemaReady, messages } = openCheck(url);
  expect(await isSchemaReady()).toBe(true);
  expect(messages).toEqual([]);
});

test("a release refuses a database that is two releases ahead, with one sentence", async () => {
  const url = await createDatabase();
  await migrateDatabase(url, { migrations: await migrationsAfter(2) });
  const sentence =
    /^the database has schema version \d+, and this release works with \d+ and \d+: start the release of/;
  await expect(migrateDatabase(url)).rejects.toThrow(sentence);
  const { isSchemaReady, messages } = openCheck(url);
  expect(await isSchemaReady()).toBe(false);
  expect(await isSchemaReady()).toBe(false);
  expect(messages).toEqual([expect.stringMatching(sentence)]);
});

test("a process is ready as soon as another one has migrated its database", async () => {
  const url = await createEmptyDatabase();
  const { isSchemaReady, messages } = openCheck(url);
  expect(await isSchemaReady()).toBe(false);
  await migrateDatabase(url);
  expect(await isSchemaReady()).toBe(true);
  expect(messages).toEqual([expect.stringMatching(/schema version 0.*run `migrate` of this release$/)]);
});
