import { type Insertable, type Selectable, sql } from "kysely";
import { inTransaction } from "../in-transaction.ts";
import type { Db, Mode, Tables } from "../tables.ts";

export type EventRow = Selectable<Tables["webhook_event"]>;
/** Whose events: those of an account in one mode. */
export type EventOwner = { accountId: string; mode: Mode };

/** Inserts an event about an endpoint, and by a trigger its deliveries. Returns its id. */
export async function insertEndpointEvent(
  db: Db,
  event: Pick<Insertable<Tables["webhook_event"]>, "account_id" | "mode" | "type" | "at" | "endpoint_id" | "detail">,
): Promise<string> {
  const row = { ...event, merchant_id: null };
  return (await db.insertInto("webhook_event").values(row).returning("id").executeTakeFirstOrThrow()).id;
}

/**
 * Returns how many events about endpoints an account and mode has after a time, counted up to `limit`: test events, or all
 * others.
 */
export async function countEndpointEvents(
  db: Db,
  { accountId, mode, since, tests, limit }: EventOwner & { since: Date; tests: boolean; limit: number },
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from (
      select from webhook_event where account_id = ${accountId} and mode = ${mode} and endpoint_id is not null
        and at > ${since} and (type = 'webhook_endpoint.test') = ${tests} limit ${limit}
    ) recent`.execute(db);
  return rows[0]?.count ?? 0;
}

/** Returns an event of an account and mode. */
export async function findEvent(db: Db, { accountId, mode, id }: EventOwner & { id: string }) {
  return db
    .selectFrom("webhook_event")
    .selectAll()
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .where("mode", "=", mode)
    .executeTakeFirst();
}

/**
 * Gives committed events that have no position yet the next positions of their account and mode, at most `limit`, in the
 * order in which they were inserted. The lock of the list makes one call after the other do so. A position is therefore
 * never given below one that a reader has seen, however late an event commits. Returns the number of these events.
 */
export async function numberEvents(db: Db, { accountId, mode }: EventOwner, limit: number): Promise<number> {
  const { rows } = await sql`
    select from webhook_event where account_id = ${accountId} and mode = ${mode} and position is null limit 1`.execute(
    db,
  );
  if (rows.length === 0) return 0;
  return inTransaction(db, async (own) => {
    const list = await own
      .insertInto("webhook_event_list")
      .values({ account_id: accountId, mode, last_position: 0 })
      .onConflict((conflict) =>
        conflict.columns(["account_id", "mode"]).doUpdateSet({ last_position: sql`webhook_event_list.last_position` }),
      )
      .returning("last_position")
      .executeTakeFirstOrThrow();
    // A statement of its own, whose snapshot is taken once the lock is held.
    const numbered = await sql<{ count: number }>`
      with unnumbered as (
        select id, sequence from webhook_event
        where account_id = ${accountId} and mode = ${mode} and position is null
        order by sequence limit ${limit}
      ), numbered as (
        update webhook_event e set position = ${list.last_position} + n.place
        from (select id, row_number() over (order by sequence) as place from unnumbered) n
        where e.id = n.id returning e.position
      )
      update webhook_event_list set last_position = (select max(position) from numbered)
      where account_id = ${accountId} and mode = ${mode} and exists (select from numbered)
      returning (select count(*)::int from numbered) as count`.execute(own);
    return numbered.rows[0]?.count ?? 0;
  });
}

/** Returns the numbered events of an account and mode that have the highest positions, in their order. */
export async function listLastEvents(
  db: Db,
  { accountId, mode, limit }: EventOwner & { limit: number },
): Promise<EventRow[]> {
  const rows = await db
    .selectFrom("webhook_event")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("mode", "=", mode)
    .where("position", "is not", null)
    .orderBy("position", "desc")
    .limit(limit)
    .execute();
  return rows.reverse();
}

/** Returns numbered events of an account and mode after a position, in their order. */
export async function listEventsAfter(
  db: Db,
  args: EventOwner & { after: number; limit: number },
): Promise<EventRow[]> {
  return selectEventsAfter(db, args).execute();
}

/** Builds the query of `listEventsAfter`. Exported for a test of its query plan. */
export function selectEventsAfter(
  db: Db,
  { accountId, mode, after, limit }: EventOwner & { after: number; limit: number },
) {
  return db
    .selectFrom("webhook_event")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("mode", "=", mode)
    .where("position", ">", after)
    .orderBy("position")
    .limit(limit);
}
