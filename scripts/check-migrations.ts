import { loadModule, parseSync } from "libpg-query";
import { type OurMigration, readMigrations } from "../db/migrate.ts";
import { recordMigration } from "../db/record-migration.ts";
import { findMigrationErrors, type ParsedMigration } from "./migration-rules.ts";

/** Returns migrations with their statements, parsed by Postgres' own parser. Throws when it cannot read one. */
export async function parseMigrations(migrations: Readonly<Record<string, OurMigration>>): Promise<ParsedMigration[]> {
  await loadModule();
  const parse = (texts: readonly string[]) =>
    texts.flatMap((text) => parseSync(text).stmts ?? []).flatMap(({ stmt }) => stmt ?? []);
  const parsed: ParsedMigration[] = [];
  for (const [name, migration] of Object.entries(migrations)) {
    const { contracts, documented } = migration;
    const { statements, indexes } = await recordMigration(migration);
    // Indexes that are built outside the transaction block nothing, but a mistake is found here.
    parse(indexes);
    parsed.push({ name, statements: parse(statements), contracts, documented });
  }
  return parsed;
}

if (import.meta.main) {
  const migrations = await parseMigrations(await readMigrations());
  const errors = findMigrationErrors(migrations);
  for (const error of errors) console.error(`db/migrations: ${error}`);
  if (errors.length > 0) process.exitCode = 1;
  else console.log(`migrations: ${migrations.length}, and the former release works with each`);
}
