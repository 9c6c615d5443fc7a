import { readdir } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { buildIndexes, type ConcurrentIndexes } from "./concurrent-indexes.ts";
import { openDb } from "./open.ts";
import { listTransitions } from "./states.ts";
import type { Pool } from "./tables.ts";

const folder = new URL("./migrations/", import.meta.url);

/** A migration runs in one transaction; its indexes on tables that were there before are built after it. */
type OurMigration = Migration & { concurrentIndexes?: ConcurrentIndexes };

/**
 * How long a migration waits for a lock on a table, milliseconds. While it waits, every statement on that table waits
 * behind it, so it gives up soon and lets them pass before it asks again.
 */
const LOCK_TIMEOUT_MS = 2_000;
/** How long those statements have until the next try, milliseconds. */
const LOCK_PAUSE_MS = 3_000;
/** So many tries, some ten minutes: a transaction that is open for longer wants a person. */
const LOCK_TRIES = 120;
/** How often another replica that migrates is looked for, milliseconds. */
const TURN_POLL_MS = 250;
/** SQLSTATE of a lock that was not to be had in time. */
const LOCK_NOT_AVAILABLE = "55P03";

async function getMigrations(): Promise<Record<string, OurMigration>> {
  const files = (await readdir(folder)).filter((file) => file.endsWith(".ts")).sort();
  const modules = files.map(
    async (file) => [file.replace(/\.ts$/, ""), await import(new URL(file, folder).href)] as const,
  );
  return Object.fromEntries(await Promise.all(modules));
}

/**
 * Brings the schema up to date. Several replicas may try at once: one migrates, the others wait for it. Each migration is
 * a transaction of its own that never waits long for a lock, and is tried again; large indexes are built after it, while
 * everything else goes on.
 * Gives the names of the migrations it ran. Throws what the database said when one fails; nothing of that one is kept.
 * @param db with two connections at least
 * @param onWait called when a migration has waited in vain for a lock and will be tried again
 */
export async function migrate(db: Pool, onWait: (migration: string) => void = () => undefined): Promise<string[]> {
  return inTurn(db, async () => {
    const ran = await migrateEach(db, onWait);
    // The moves of this release; those of the releases before stay, because events speak of them.
    await db
      .insertInto("transition")
      .values(listTransitions())
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    return ran;
  });
}

/**
 * Does some work while no other replica does it. The lock belongs to a transaction, which holds nothing else: a proxy that
 * hands out connections by transaction keeps it. It is asked for again and again, as a session that waits for it would
 * keep an index from being built.
 */
async function inTurn<T>(db: Pool, work: () => Promise<T>): Promise<T> {
  for (;;) {
    const turn = await db.transaction().execute(async (trx) => {
      const { rows } = await sql<{ ours: boolean }>`
        select pg_try_advisory_xact_lock(hashtextextended('migrate', 0)) as ours`.execute(trx);
      if (!rows[0]?.ours) return undefined;
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(trx);
      return { result: await work() };
    });
    if (turn) return turn.result;
    await pause(TURN_POLL_MS);
  }
}

async function migrateEach(db: Pool, onWait: (migration: string) => void): Promise<string[]> {
  const all = await getMigrations();
  const provider = { getMigrations: async () => mapValues(all, withLockTimeout) };
  const migrator = new Migrator({ db, provider });
  const ran: string[] = [];
  // A run that was cut off after a transaction has left its indexes to be built.
  for (const { name, executedAt } of await migrator.getMigrations())
    if (executedAt !== undefined) await buildIndexes(db, all[name]?.concurrentIndexes ?? {});
  for (let tries = 1; ; ) {
    const { error, results = [] } = await migrator.migrateUp();
    const [result] = results;
    if (!error && !result) return ran;
    if (!error && result) {
      await buildIndexes(db, all[result.migrationName]?.concurrentIndexes ?? {});
      ran.push(result.migrationName);
      tries = 1;
      continue;
    }
    if (!result || tries >= LOCK_TRIES || (error as { code?: unknown }).code !== LOCK_NOT_AVAILABLE) throw error;
    tries += 1;
    onWait(result.migrationName);
    await pause(LOCK_PAUSE_MS);
  }
}

function withLockTimeout(migration: OurMigration): Migration {
  return {
    async up(db) {
      await sql.raw(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`).execute(db);
      await migration.up(db);
    },
  };
}

function mapValues<T, U>(record: Record<string, T>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}

/** The same for a database URL. */
export async function migrateDatabase(url: string, onWait?: (migration: string) => void): Promise<string[]> {
  // An index on a large table takes its time, and so does waiting for the replica that migrates first.
  const db = openDb(url, { max: 2, applicationName: "pay-migrate", statementTimeoutMs: 0 });
  try {
    return await migrate(db, onWait);
  } finally {
    await db.destroy();
  }
}

/** True when every migration of this release has run; part of readiness. An index that is still built only costs time. */
export async function isMigrated(db: Pool): Promise<boolean> {
  const known = await new Migrator({ db, provider: { getMigrations } }).getMigrations();
  return known.every((migration) => migration.executedAt !== undefined);
}
