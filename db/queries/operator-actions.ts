import type { Insertable } from "kysely";
import type { Db, Tables } from "../tables.ts";

/** Inserts an operator's action into the audit log. */
export async function insertOperatorAction(db: Db, row: Insertable<Tables["operator_action"]>): Promise<void> {
  await db.insertInto("operator_action").values(row).execute();
}
