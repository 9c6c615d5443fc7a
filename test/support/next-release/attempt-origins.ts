import { type Kysely, sql } from "kysely";

// A query of the next release.

/** Records who confirmed these attempts. Repeatable. */
export async function insertAttemptOrigins<T>(
  db: Kysely<T>,
  attemptIds: readonly string[],
  confirmedBy: string,
): Promise<void> {
  await sql`
    insert into attempt_origin (attempt_id, confirmed_by)
    select id, ${confirmedBy}::text from attempt where id = any(${attemptIds}::text[])
    on conflict do nothing`.execute(db);
}
