import { setTimeout as pause } from "node:timers/promises";
import { sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { applyGrants } from "./apply-grants.ts";
import { buildIndexes, type ConcurrentIndexes } from "./concurrent-indexes.ts";
import { type BlockingSession, MIGRATE_APPLICATION, whileLocked } from "./migration-lock.ts";
import { migrationNames } from "./migration-names.ts";
import { openDb } from "./open.ts";
import {
  compareVersions,
  describeRefusal,
  highestVersion,
  readMigrationNames,
  SchemaTooNewError,
} from "./schema-version.ts";
import { listTransitions } from "./states.ts";
import type { Pool } from "./tables.ts";

/**
 * A migration runs in one transaction. `npm run check` refuses one that the former release cannot work with
 * (docs/operations/upgrades.md).
 */
export type OurMigration = Migration & {
  /** Indexes on tables that existed before. They are built after the transaction. */
  concurrentIndexes?: ConcurrentIndexes;
  /** Declares that the migration removes something: the migration of the earlier release that stopped using it. */
  contracts?: string;
  /** Why the former release works with a new constraint, value, reference or changed rows, by the name that the check asks for. */
  documented?: Readonly<Record<string, string>>;
};
/** Migrations by name; they run in the order of their names. */
export type Migrations = Readonly<Record<string, OurMigration>>;

export type MigrateOptions = {
  /** Called when a migration has not got a lock in time and is going to be retried. */
  onWait?: ((migration: string) => void) | undefined;
  /** Called with a session that the migration waits for: after five seconds, then each minute. */
  onBlocked?: ((session: BlockingSession) => void) | undefined;
  /** The files of db/migrations when unset. */
  migrations?: Migrations;
};

/**
 * How long a migration waits for a lock on a table, milliseconds. Every other statement on that table queues behind the
 * waiting migration, so it gives up early and lets them pass before it retries. A migration that needs several tables can
 * deadlock with a request. It gives up before Postgres looks for deadlocks (`deadlock_timeout`, 1 s), which could end the
 * request.
 */
const LOCK_TIMEOUT_MS = 500;
/** The pause before a retry, in which those statements run, milliseconds. */
const LOCK_PAUSE_MS = 3_000;
/** Attempts at one migration, about ten minutes; a transaction that stays open for longer needs an operator. */
const LOCK_ATTEMPTS = 170;
/** SQLSTATEs of a lock timeout and of a deadlock. */
const LOCK_STATES = new Set<unknown>(["55P03", "40P01"]);

/** Loads the files of db/migrations. */
export async function readMigrations(): Promise<Migrations> {
  const modules = migrationNames.map(async (name) => [name, await import(`./migrations/${name}.ts`)] as const);
  return Object.fromEntries(await Promise.all(modules));
}

/**
 * Brings the schema up to date and returns the names of the migrations that ran.
 *
 * Several replicas may call it at the same time: one migrates and the others wait for it. Each migration is one
 * transaction, which never waits long for a lock and is retried. Large indexes are built after the transaction, without
 * blocking writes. Finally each role gets the privileges of this release. It loses all others after a migration, also one of a call
 * that was interrupted. Without one, the database may have been migrated by a later release with the same schema, whose processes
 * need their privileges.
 *
 * It changes nothing on a database that the next release has migrated: that release's privileges include those of this one.
 * Throws `SchemaTooNewError` for a database of a later release, and the database's error when a migration fails, whose
 * transaction is then rolled back.
 * @param db a pool of at least two connections
 */
async function migrate(db: Pool, { onWait, onBlocked, migrations }: MigrateOptions = {}): Promise<string[]> {
  const all = migrations ?? (await readMigrations());
  const release = highestVersion(Object.keys(all));
  const run = async () => {
    const database = highestVersion(await readMigrationNames(db));
    const state = compareVersions(database, release);
    if (state === "newer") throw new SchemaTooNewError(describeRefusal(state, database, release));
    if (state === "next") return [];
    const ran = await migrateEach(db, all, onWait);
    // Adds the moves of this release. The moves of earlier releases stay, because events refer to them.
    await db
      .insertInto("transition")
      .values(listTransitions())
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    await applyGrants(db);
    return ran;
  };
  return whileLocked(db, run, (session) => onBlocked?.(session));
}

async function migrateEach(db: Pool, all: Migrations, onWait: MigrateOptions["onWait"]): Promise<string[]> {
  const provider = { getMigrations: async () => mapValues(all, withLockTimeout) };
  const migrator = new Migrator({ db, provider });
  const ran: string[] = [];
  // A run that was interrupted after a transaction has left its indexes unbuilt.
  for (const { name, executedAt } of await migrator.getMigrations())
    if (executedAt !== undefined) await buildIndexes(db, all[name]?.concurrentIndexes ?? {});
  for (let attempts = 1; ; ) {
    const { error, results = [] } = await migrator.migrateUp();
    const [result] = results;
    if (!error && !result) return ran;
    if (!error && result) {
      await buildIndexes(db, all[result.migrationName]?.concurrentIndexes ?? {});
      ran.push(result.migrationName);
      attempts = 1;
      continue;
    }
    if (!result || attempts >= LOCK_ATTEMPTS || !isLockTimeout(error)) throw error;
    attempts += 1;
    onWait?.(result.migrationName);
    await pause(LOCK_PAUSE_MS);
  }
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && LOCK_STATES.has(error.code);
}

function withLockTimeout(migration: OurMigration): Migration {
  return {
    async up(db) {
      await sql.raw(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`).execute(db);
      await migration.up(db);
    },
  };
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}

/** Does the same as `migrate` for a database URL. */
export async function migrateDatabase(url: string, options: MigrateOptions = {}): Promise<string[]> {
  // No statement timeout: building an index on a large table takes long, and so does waiting for another replica. Its sessions
  // hold the locks of migrations, so Postgres ends them a minute after their machine has vanished, and not after two hours.
  const db = openDb(url, {
    max: 2,
    applicationName: MIGRATE_APPLICATION,
    statementTimeoutMs: 0,
    settings: { tcp_keepalives_idle: 30, tcp_keepalives_interval: 10, tcp_keepalives_count: 3 },
  });
  try {
    return await migrate(db, options);
  } finally {
    await db.destroy();
  }
}
