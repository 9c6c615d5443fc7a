import { openDb } from "../../db/open.ts";
import { atEnd } from "./at-end.ts";
import { createDatabase } from "./database.ts";

/** Creates a database and opens it with up to `connections` connections; closed and dropped when the file is over. */
export async function openTestDb(connections = 10) {
  const url = await createDatabase();
  const db = openDb(url, { max: connections });
  atEnd(() => db.destroy());
  return { db, url };
}
