import { readdir } from "node:fs/promises";
import { type Migration, Migrator } from "kysely/migration";
import { openDb } from "./open.ts";
import { listTransitions } from "./states.ts";
import type { Pool } from "./tables.ts";

const folder = new URL("./migrations/", import.meta.url);

async function getMigrations(): Promise<Record<string, Migration>> {
  const files = (await readdir(folder)).filter((file) => file.endsWith(".ts")).sort();
  const modules = files.map(
    async (file) => [file.replace(/\.ts$/, ""), await import(new URL(file, folder).href)] as const,
  );
  return Object.fromEntries(await Promise.all(modules));
}

/**
 * Brings the schema up to date, under kysely's advisory lock, so that several replicas may try at once.
 * Gives the names of the migrations it ran. Throws what the database said when one fails; nothing of it is kept then.
 */
export async function migrate(db: Pool): Promise<string[]> {
  const { error, results } = await new Migrator({ db, provider: { getMigrations } }).migrateToLatest();
  if (error) throw error;
  // The moves of this release; those of the releases before stay, because events speak of them.
  await db
    .insertInto("transition")
    .values(listTransitions())
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return (results ?? []).map((result) => result.migrationName);
}

/** The same for a database URL. */
export async function migrateDatabase(url: string): Promise<string[]> {
  // An index on a large table takes its time, and so does waiting for the replica that migrates first.
  const db = openDb(url, { max: 2, applicationName: "pay-migrate", statementTimeoutMs: 0 });
  try {
    return await migrate(db);
  } finally {
    await db.destroy();
  }
}

/** True when every migration of this release has run; part of readiness. */
export async function isMigrated(db: Pool): Promise<boolean> {
  const known = await new Migrator({ db, provider: { getMigrations } }).getMigrations();
  return known.every((migration) => migration.executedAt !== undefined);
}
