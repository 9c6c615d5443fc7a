import { openDb } from "../../db/open.ts";
import { addCleanup } from "./cleanups.ts";
import { createDatabase } from "./test-database.ts";

/** Creates a database and opens it with up to `connections` connections; closed and dropped when the file is over. */
export async function openTestDb(connections = 10) {
  const url = await createDatabase();
  const db = openDb(url, { max: connections });
  addCleanup(() => db.destroy());
  return { db, url };
}
