import {
  DummyDriver,
  Kysely,
  type KyselyConfig,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from "kysely";
import { loadModule, parseSync } from "libpg-query";
import { type OurMigration, readMigrations } from "../db/migrate.ts";
import { findMigrationErrors, type ParsedMigration } from "./migration-rules.ts";

/** Runs a migration without a database, and returns the statements that it would execute. Reads return no rows. */
async function recordStatements({ up, concurrentIndexes = {} }: OurMigration): Promise<string[]> {
  const recorded: string[] = [];
  const dialect: KyselyConfig["dialect"] = {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
  const db = new Kysely<unknown>({ dialect, log: ({ query }) => void recorded.push(query.sql) });
  await up(db);
  // Builds outside the transaction lock nothing; a mistake in a definition is found here.
  for (const [name, definition] of Object.entries(concurrentIndexes))
    parseSync(`create index concurrently ${name} ${definition}`);
  return recorded;
}

/** Returns the migrations with their statements parsed by Postgres' own parser. */
export async function parseMigrations(migrations: Readonly<Record<string, OurMigration>>): Promise<ParsedMigration[]> {
  await loadModule();
  const parsed: ParsedMigration[] = [];
  for (const [name, migration] of Object.entries(migrations)) {
    const texts = await recordStatements(migration);
    const statements = texts.flatMap((text) => parseSync(text).stmts ?? []).flatMap(({ stmt }) => stmt ?? []);
    parsed.push({ name, statements, contracts: migration.contracts, documented: migration.documented });
  }
  return parsed;
}

if (import.meta.main) {
  const migrations = await parseMigrations(await readMigrations());
  const errors = findMigrationErrors(migrations);
  for (const error of errors) console.error(`db/migrations: ${error}`);
  if (errors.length > 0) process.exitCode = 1;
  else console.log(`migrations: the former release works with all ${migrations.length}`);
}
