import type { Log } from "../runtime/log.ts";
import { migrationNames } from "./migration-names.ts";
import {
  compareVersions,
  describeRefusal,
  highestVersion,
  readMigrationNames,
  type SchemaState,
} from "./schema-version.ts";
import type { Pool } from "./tables.ts";

/** The schema version of this release. */
export const releaseVersion = highestVersion(migrationNames);

/** `refusal` says why this release does not work with the database, and is undefined when it does. */
export type SchemaCheck = { state: SchemaState; refusal: string | undefined };

/**
 * Compares the schema of a database with this release. A database with some of this release's migrations is `older`: they run
 * one after another. An index that is not built yet only costs time.
 */
export async function checkSchema(db: Pool): Promise<SchemaCheck> {
  const executed = await readMigrationNames(db);
  const database = highestVersion(executed);
  const isComplete = migrationNames.every((name) => executed.includes(name));
  const state = isComplete ? compareVersions(database, releaseVersion) : "older";
  const refused = state === "older" || state === "newer";
  return { state, refusal: refused ? describeRefusal(state, database, releaseVersion) : undefined };
}

/**
 * Returns a check for readiness: true while this release works with the schema of the database. It logs why when it does not,
 * once for each reason. The check rejects when Postgres cannot be reached.
 */
export function watchSchema(db: Pool, log: Log): () => Promise<boolean> {
  let logged: string | undefined;
  return async () => {
    const { refusal } = await checkSchema(db);
    if (refusal !== undefined && refusal !== logged) log.error(refusal);
    logged = refusal;
    return refusal === undefined;
  };
}
