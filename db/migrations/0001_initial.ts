import { type Kysely, sql } from "kysely";
import { statements } from "./initial/statements.ts";

/** Creates the whole schema. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const text of statements) await sql.raw(text).execute(db);
}
