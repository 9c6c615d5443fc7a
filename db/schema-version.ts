import { sql } from "kysely";
import type { Pool } from "./tables.ts";

/** SQLSTATE of a table that does not exist. */
const UNDEFINED_TABLE = "42P01";

/**
 * Returns the schema version that a migration belongs to: the number at the start of its name. The migrations of one release
 * share a number, and each release with migrations takes the next one.
 */
export function versionOf(migration: string): number {
  const version = Number(/^(\d+)_/.exec(migration)?.[1]);
  if (Number.isNaN(version)) throw new Error(`the migration ${migration} has no number`);
  return version;
}

/** Returns the highest version among migrations, and 0 when there are none. */
export function highestVersion(migrations: readonly string[]): number {
  return Math.max(0, ...migrations.map(versionOf));
}

/**
 * How the schema of a database relates to a release. `current` has the release's own version, and `next` that of the release
 * after it. A release works with both, so that two releases run beside each other during a rollout, and the former one can be
 * started again after it.
 */
export type SchemaState = "older" | "current" | "next" | "newer";

/** Compares the version of a database with the version of a release. */
export function compareVersions(database: number, release: number): SchemaState {
  if (database < release) return "older";
  if (database === release) return "current";
  return database === release + 1 ? "next" : "newer";
}

/**
 * Says in one sentence why a release does not work with a database, and what an operator does about it.
 * @param state `older` also when some migrations of the release's own version have not run
 */
export function describeRefusal(state: "older" | "newer", database: number, release: number): string {
  if (state === "older" && database >= release)
    return `not every migration of schema version ${release} has run: wait for \`migrate\` of this release, or run it`;
  const versions = `the database has schema version ${database}, and this release works with ${release} and ${release + 1}`;
  return state === "older"
    ? `${versions}: run \`migrate\` of this release`
    : `${versions}: start the release of version ${database - 1} or ${database}`;
}

/** A database whose schema is newer than a release can work with. */
export class SchemaTooNewError extends Error {
  override readonly name = "SchemaTooNewError";
}

/** Reads the names of the migrations that have run, of any release. An empty database has none. */
export async function readMigrationNames(db: Pool): Promise<string[]> {
  try {
    const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
    return rows.map(({ name }) => name);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === UNDEFINED_TABLE) return [];
    throw error;
  }
}
