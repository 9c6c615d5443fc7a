import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { migrateDatabase } from "../../db/migrate.ts";
import { addCleanup } from "./cleanups.ts";
import { execute, namedDatabase } from "./execute-sql.ts";

/** Creates a migrated database on the shared Postgres, dropped when the file is over. Returns its URL. */
export async function createDatabase(): Promise<string> {
  const { postgresUrl, template } = inject("services");
  const name = `pay_${randomBytes(6).toString("hex")}`;
  await execute(postgresUrl, `create database ${name} template ${template}`);
  addCleanup(() => execute(postgresUrl, `drop database if exists ${name} with (force)`));
  return namedDatabase(postgresUrl, name);
}

/** Creates an empty database on the shared Postgres, dropped when the file is over. Returns its URL. */
export async function createEmptyDatabase(): Promise<string> {
  const { postgresUrl } = inject("services");
  const name = `pay_${randomBytes(6).toString("hex")}`;
  await execute(postgresUrl, `create database ${name}`);
  addCleanup(() => execute(postgresUrl, `drop database if exists ${name} with (force)`));
  return namedDatabase(postgresUrl, name);
}

/** Creates a migrated database on a private server, which has no template. Returns its URL. */
export async function createDatabaseOn(serverUrl: string): Promise<string> {
  const name = `pay_${randomBytes(6).toString("hex")}`;
  await execute(serverUrl, `create database ${name}`);
  await migrateDatabase(namedDatabase(serverUrl, name));
  return namedDatabase(serverUrl, name);
}

/** Copies a database that has no open connections. Returns the URL of the copy. */
export async function copyDatabase(url: string): Promise<string> {
  const { postgresUrl } = inject("services");
  const name = `pay_${randomBytes(6).toString("hex")}`;
  await execute(postgresUrl, `create database ${name} template ${new URL(url).pathname.slice(1)}`);
  addCleanup(() => execute(postgresUrl, `drop database if exists ${name} with (force)`));
  return namedDatabase(postgresUrl, name);
}
