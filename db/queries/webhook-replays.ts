import { type RawBuilder, sql } from "kysely";
import type { Db } from "../tables.ts";

const fresh = { state: "pending" as const, attempts_made: 0, delivered_at: null };

/** An event of a page that was replayed. */
export type ReplayedEvent = { event_id: string; at: Date };

/** Makes one delivery due now, with no attempts made. Returns false when the endpoint has no such delivery. */
export async function replayDelivery(
  db: Db,
  args: { eventId: string; endpointId: string; at: Date },
): Promise<boolean> {
  const row = await db
    .updateTable("webhook_delivery")
    .set({ ...fresh, due_at: args.at })
    .where("event_id", "=", args.eventId)
    .where("endpoint_id", "=", args.endpointId)
    .returning("event_id")
    .executeTakeFirst();
  return row !== undefined;
}

/** The place after which a page of a replay begins: the time and the id of an event. */
export type ReplayPlace = readonly [string, string];

/**
 * Makes deliveries of a period due now, the oldest events first, with those of events that the endpoint has missed while it
 * was disabled. Leaves out what its filters leave out, and pending deliveries. Returns the events of the page, also those
 * that stay pending, in their order.
 */
export async function replayPeriod(
  db: Db,
  args: { endpointId: string; since: Date; until: Date; after: ReplayPlace | undefined; at: Date; limit: number },
): Promise<ReplayedEvent[]> {
  const { rows } = await sql<ReplayedEvent>`
    with page as (${selectPeriod(args)}), replayed as (
      insert into webhook_delivery as d (event_id, endpoint_id, priority, at, due_at)
      select event_id, endpoint_id, priority, at, ${args.at} from page order by event_id
      on conflict (event_id, endpoint_id) do update
      set state = 'pending', attempts_made = 0, delivered_at = null, due_at = excluded.due_at
      where d.state <> 'pending'
    )
    select event_id, at from page order by at, event_id`.execute(db);
  return rows;
}

/**
 * Returns the open transactions that have inserted, changed or deleted events, by their virtual ids. A transaction takes the lock
 * of the table before its trigger reads the endpoints, so once all of them have ended, every event that was written for
 * endpoints as they were before this call is visible.
 */
export async function listEventWriters(db: Db): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select virtualtransaction as id from pg_locks
    where locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
      and relation = 'webhook_event'::regclass and mode = 'RowExclusiveLock' and granted
      and pid is distinct from pg_backend_pid()`.execute(db);
  return rows.map(({ id }) => id);
}

/** Builds the query of a page of `replayPeriod`. Exported for a test of its query plan. */
export function selectPeriod({
  endpointId,
  since,
  until,
  after,
  limit,
}: {
  endpointId: string;
  since: Date;
  until: Date;
  after: ReplayPlace | undefined;
  limit: number;
}): RawBuilder<unknown> {
  return sql`
    select v.id as event_id, e.id as endpoint_id, v.at, v.priority
    from webhook_endpoint e
    join webhook_event v on v.account_id = e.account_id and v.mode = e.mode
    where e.id = ${endpointId} and v.at >= ${since} and v.at < ${until}
      ${after === undefined ? sql`` : sql`and (v.at, v.id) > (${after[0]}::timestamptz, ${after[1]})`}
      and v.type <> 'webhook_endpoint.test' and v.endpoint_id is distinct from e.id
      and (e.event_types is null or v.type = any(e.event_types))
      and (e.merchant_ids is null or v.merchant_id = any(e.merchant_ids))
    order by v.at, v.id limit ${limit}`;
}

/** Makes given-up deliveries of an endpoint due now, the oldest events first. Returns them in their order. */
export async function replayGivenUp(
  db: Db,
  args: { endpointId: string; after: ReplayPlace | undefined; at: Date; limit: number },
): Promise<ReplayedEvent[]> {
  const { endpointId, after, at, limit } = args;
  const { rows } = await sql<ReplayedEvent>`
    with page as (
      select event_id, at from webhook_delivery
      where endpoint_id = ${endpointId} and state = 'given_up'
        ${after === undefined ? sql`` : sql`and (at, event_id) > (${after[0]}::timestamptz, ${after[1]})`}
      order by at, event_id limit ${limit}
    ), replayed as (
      update webhook_delivery d set state = 'pending', attempts_made = 0, delivered_at = null, due_at = ${at}
      from page where d.event_id = page.event_id and d.endpoint_id = ${endpointId} and d.state = 'given_up'
    )
    select event_id, at from page order by at, event_id`.execute(db);
  return rows;
}
