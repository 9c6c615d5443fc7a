import { type Kysely, sql } from "kysely";

/** Deleted merchants that are still owed money, who may cancel a payment, and whose a buyer's data is. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // A deleted merchant is paid out below its minimum: what waited for it goes on.
  `create trigger merchant_deleted_wakes after update of deleted_at on merchant for each row
    when (old.deleted_at is distinct from new.deleted_at) execute function wake_merchant()`,
];
