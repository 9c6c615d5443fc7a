import { sql } from "kysely";
import type { RefundState } from "../../db/states.ts";
import type { Pool } from "../../db/tables.ts";

/** Sets the state of a refund to one that no move leads to, without triggers, as only a superuser can. */
export async function plantRefundState(db: Pool, id: string, state: RefundState): Promise<void> {
  await db.transaction().execute(async (own) => {
    await sql`set local session_replication_role = replica`.execute(own);
    await own.updateTable("refund").set({ state }).where("id", "=", id).execute();
  });
}
