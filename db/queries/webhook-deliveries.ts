import { type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";
import { getsNotices, isSent } from "./webhook-endpoints.ts";
import type { EventRow } from "./webhook-events.ts";

export type DeliveryState = Selectable<Tables["webhook_delivery"]>["state"];

/** An event with the state of its delivery to one endpoint. */
export type DeliveryRow = EventRow &
  Omit<Selectable<Tables["webhook_delivery"]>, "event_id" | "endpoint_id" | "priority" | "at">;

/** A due event, and how many attempts to deliver it were made. */
export type DueEvent = EventRow & { attempts_made: number };

/**
 * Returns the due events of an endpoint: notices of changes, then payments and changes of endpoints, then payouts, and the longest due first.
 * Returns none for a deleted endpoint, and only notices for one that was disabled within the last day. Leaves out those in `without`,
 * which are being sent already, and those of another account or mode: the api writes deliveries, and a stolen login could have them
 * signed with another merchant's secret.
 */
export async function listDueEvents(
  db: Db,
  args: { endpointId: string; now: Date; without: readonly string[]; limit: number },
): Promise<DueEvent[]> {
  const { rows } = await sql<DueEvent>`
    select (due.event).*, due.attempts_made
    from (values (0), (1), (2)) p (priority)
    join webhook_endpoint e on e.id = ${args.endpointId} and ${isSent}
    cross join lateral (
      select v as event, d.attempts_made, d.due_at from webhook_delivery d
      join webhook_event v on v.id = d.event_id and v.account_id = e.account_id and v.mode = e.mode
      where d.endpoint_id = ${args.endpointId} and d.priority = p.priority and d.due_at <= ${args.now}
        and d.event_id <> all(${args.without}::text[])
      order by d.due_at limit ${args.limit}
    ) due
    order by p.priority, due.due_at, (due.event).sequence limit ${args.limit}`.execute(db);
  return rows;
}

/** The result of a delivery attempt. `dueAt` is the time of the next attempt; null when there is none. */
export type DeliveryAttempt = {
  id: string;
  /** The count before the attempt. A delivery that was replayed or attempted meanwhile is left unchanged. */
  attemptsMade: number;
  state: DeliveryState;
  outcome: string;
  /** When the request was sent, and when it ended. */
  sentAt: Date;
  at: Date;
  dueAt: Date | null;
  /** The content type and the beginning of the response's body; null without a response. */
  responseType: string | null;
  responseBody: string | null;
};

/** Requests that are kept for an event and an endpoint, the newest: replays of one event could make any number. */
export const KEPT_ATTEMPTS = 20;

/** Stores the results of delivery attempts to an endpoint in one statement, and deletes the oldest beyond `KEPT_ATTEMPTS`. */
export async function recordDeliveryAttempts(
  db: Db,
  endpointId: string,
  attempts: readonly DeliveryAttempt[],
): Promise<void> {
  if (attempts.length === 0) return;
  const column = <K extends keyof DeliveryAttempt>(name: K) => attempts.map((attempt) => attempt[name]);
  await sql`
    with tried as (
      select * from unnest(${column("id")}::text[], ${column("attemptsMade")}::integer[], ${column("state")}::text[],
        ${column("outcome")}::text[], ${column("sentAt")}::timestamptz[], ${column("at")}::timestamptz[],
        ${column("dueAt")}::timestamptz[], ${column("responseType")}::text[], ${column("responseBody")}::text[])
        as t (id, attempts_made, state, outcome, sent_at, at, due_at, response_type, response_body)
    ), sent as (
      insert into webhook_attempt (event_id, endpoint_id, at, duration_ms, outcome, response_type, response_body)
      select id, ${endpointId}, sent_at, greatest(0, extract(epoch from at - sent_at) * 1000)::integer, outcome,
        response_type, response_body
      from tried
    ), crowded as (
      -- This statement does not see the row that it inserts.
      delete from webhook_attempt a using tried t cross join lateral (
        select id from webhook_attempt where event_id = t.id and endpoint_id = ${endpointId}
        order by id desc offset ${KEPT_ATTEMPTS - 1}
      ) old
      where a.event_id = t.id and a.endpoint_id = ${endpointId} and a.id = old.id
    ), locked as (
      select d.event_id from webhook_delivery d join tried t on t.id = d.event_id and t.attempts_made = d.attempts_made
      where d.endpoint_id = ${endpointId} and d.state = 'pending' order by d.event_id for update of d
    )
    update webhook_delivery d
    set attempts_made = d.attempts_made + 1, state = t.state, last_outcome = t.outcome, due_at = t.due_at,
      delivered_at = case t.state when 'delivered' then t.at end
    from tried t join locked l on l.event_id = t.id
    where d.event_id = t.id and d.endpoint_id = ${endpointId}`.execute(db);
}

/**
 * Gives up pending deliveries of a deleted or disabled endpoint, at most `limit`; within a day after it was disabled, none of notices.
 * Returns how many. The lock of the endpoint keeps it from being enabled meanwhile: later replays must stay pending.
 */
export async function giveUpDeliveries(db: Db, endpointId: string, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    with closed as (
      select id, case when deleted_at is null then 'endpoint disabled' else 'endpoint deleted' end as outcome,
        ${getsNotices} as gets_notices
      from webhook_endpoint e
      where id = ${endpointId} and (deleted_at is not null or disabled_at is not null) for share
    ), part as (
      select event_id from webhook_delivery where endpoint_id = ${endpointId} and due_at is not null
        and not (priority = 0 and exists (select from closed where gets_notices)) limit ${limit}
    ), locked as (
      select d.event_id from webhook_delivery d join part p on p.event_id = d.event_id
      where d.endpoint_id = ${endpointId} and d.due_at is not null order by d.event_id for update of d
    )
    update webhook_delivery d set state = 'given_up', last_outcome = c.outcome, due_at = null
    from closed c, locked l where d.endpoint_id = c.id and d.event_id = l.event_id`.execute(db);
  return Number(numAffectedRows);
}

/** Returns how many deliveries of an endpoint are pending, of all priorities or of one, counted up to `limit`. */
export async function countPendingDeliveries(
  db: Db,
  args: { endpointId: string; limit: number; priority?: number },
): Promise<number> {
  const { endpointId, limit, priority } = args;
  const ofPriority = priority === undefined ? sql`` : sql`and priority = ${priority}`;
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from (
      select from webhook_delivery where endpoint_id = ${endpointId} and due_at is not null ${ofPriority} limit ${limit}
    ) pending`.execute(db);
  return rows[0]?.count ?? 0;
}

/** Selects deliveries of an endpoint. An undefined member does not narrow; `after` is the last one of the page before. */
export type DeliveryFilter = {
  endpointId: string;
  paymentId?: string | undefined;
  state?: DeliveryState | undefined;
  after?: readonly [string, string] | undefined;
  limit: number;
};

/** Returns deliveries of an endpoint with their events, the newest event first. */
export async function listDeliveryRows(db: Db, filter: DeliveryFilter): Promise<DeliveryRow[]> {
  return selectDeliveries(db, filter).execute();
}

/** Builds the query of `listDeliveryRows`. Exported for a test of its query plan. */
export function selectDeliveries(db: Db, { endpointId, paymentId, state, after, limit }: DeliveryFilter) {
  let query = selectDelivery(db)
    .where("d.endpoint_id", "=", endpointId)
    .orderBy("d.at", "desc")
    .orderBy("d.event_id", "desc")
    .limit(limit);
  if (paymentId !== undefined) query = query.where("v.payment_id", "=", paymentId);
  // Spelt out, so that the plan can use the index of the deliveries that are not accepted.
  if (state === "delivered") query = query.where("d.state", "=", state);
  else if (state !== undefined) query = query.where("d.state", "=", state).where("d.state", "<>", "delivered");
  if (after) query = query.where(sql<boolean>`(d.at, d.event_id) < (${after[0]}::timestamptz, ${after[1]})`);
  return query;
}

/** Returns the delivery of an event to an endpoint. */
export async function findDeliveryRow(
  db: Db,
  { eventId, endpointId }: { eventId: string; endpointId: string },
): Promise<DeliveryRow | undefined> {
  return selectDelivery(db)
    .where("d.event_id", "=", eventId)
    .where("d.endpoint_id", "=", endpointId)
    .executeTakeFirst();
}

function selectDelivery(db: Db) {
  return db
    .selectFrom("webhook_delivery as d")
    .innerJoin("webhook_event as v", "v.id", "d.event_id")
    .selectAll("v")
    .select(["d.state", "d.attempts_made", "d.last_outcome", "d.delivered_at", "d.due_at"]);
}

export type AttemptRow = Selectable<Tables["webhook_attempt"]>;

/** Returns the requests that were sent for an event to an endpoint, the newest first. */
export async function listAttemptRows(
  db: Db,
  { eventId, endpointId, limit }: { eventId: string; endpointId: string; limit: number },
): Promise<AttemptRow[]> {
  return db
    .selectFrom("webhook_attempt")
    .selectAll()
    .where("event_id", "=", eventId)
    .where("endpoint_id", "=", endpointId)
    .orderBy("id", "desc")
    .limit(limit)
    .execute();
}

/** Deletes requests that were sent before a time, at most `limit`. Returns how many. */
export async function deleteOldAttempts(db: Db, { before, limit }: { before: Date; limit: number }): Promise<number> {
  // By the rows' places: a join by the primary key would read the whole table.
  const { numAffectedRows = 0n } = await sql`
    delete from webhook_attempt where at < ${before} and ctid = any(array(
      select ctid from webhook_attempt where at < ${before} order by at limit ${limit}))`.execute(db);
  return Number(numAffectedRows);
}
