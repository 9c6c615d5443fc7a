import {
  DummyDriver,
  Kysely,
  type KyselyConfig,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from "kysely";
import type { OurMigration } from "./migrate.ts";

const dialect: KyselyConfig["dialect"] = {
  createAdapter: () => new PostgresAdapter(),
  createDriver: () => new DummyDriver(),
  createIntrospector: (db) => new PostgresIntrospector(db),
  createQueryCompiler: () => new PostgresQueryCompiler(),
};

/**
 * Runs a migration without a database. Returns the statements that it would execute, and those that build its indexes. What
 * it reads has no rows.
 */
export async function recordMigration({ up, concurrentIndexes = {} }: OurMigration): Promise<{
  statements: string[];
  indexes: string[];
}> {
  const statements: string[] = [];
  await up(new Kysely({ dialect, log: ({ query }) => void statements.push(query.sql) }));
  const indexes = Object.entries(concurrentIndexes).map(
    ([name, definition]) => `create index concurrently ${name} ${definition}`,
  );
  return { statements, indexes };
}
