import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";
import { migrateDatabase } from "../../db/migrate.ts";
import { addCleanup } from "./cleanups.ts";
import { execute, namedDatabase } from "./execute-sql.ts";

/** The connections of this process to the shared server, for statements about whole databases. */
let server: pg.Pool | undefined;

async function onServer(statement: string): Promise<void> {
  if (server === undefined) {
    server = new pg.Pool({ connectionString: inject("services").postgresUrl, max: 2, allowExitOnIdle: true });
    server.on("error", () => undefined);
  }
  await server.query(statement);
}

/** Creates a migrated database on the shared Postgres, dropped when the file is over. Returns its URL. */
export async function createDatabase(): Promise<string> {
  return createFrom(inject("services").template);
}

/** Creates an empty database on the shared Postgres, dropped when the file is over. Returns its URL. */
export async function createEmptyDatabase(): Promise<string> {
  return createFrom("template1");
}

/** Copies a database that has no open connections. Returns the URL of the copy. */
export async function copyDatabase(url: string): Promise<string> {
  return createFrom(new URL(url).pathname.slice(1));
}

async function createFrom(template: string): Promise<string> {
  const name = `pay_${randomBytes(6).toString("hex")}`;
  // Copying the files takes half the processor time of logging each page.
  await onServer(`create database ${name} template ${template} strategy file_copy`);
  addCleanup(() => onServer(`drop database if exists ${name} with (force)`));
  return namedDatabase(inject("services").postgresUrl, name);
}

/** Creates a migrated database on a private server, which has no template. Returns its URL. */
export async function createDatabaseOn(serverUrl: string): Promise<string> {
  const name = `pay_${randomBytes(6).toString("hex")}`;
  await execute(serverUrl, `create database ${name}`);
  await migrateDatabase(namedDatabase(serverUrl, name));
  return namedDatabase(serverUrl, name);
}
