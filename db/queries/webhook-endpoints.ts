import { type Insertable, type Selectable, sql, type Updateable } from "kysely";
import type { Db, Mode, Tables } from "../tables.ts";

export type EndpointRow = Selectable<Tables["webhook_endpoint"]>;

/** Identifies an endpoint; with an owner, only one of this account and mode. */
export type EndpointQuery = { endpointId: string; owner?: { accountId: string; mode: Mode } | undefined };

/** Inserts an endpoint. */
export async function insertEndpoint(
  db: Db,
  row: Omit<Insertable<Tables["webhook_endpoint"]>, "owner" | "lease_until" | "due_retries">,
): Promise<void> {
  await db
    .insertInto("webhook_endpoint")
    .values({ ...row, owner: null, lease_until: null })
    .execute();
}

type Changes = Omit<Updateable<Tables["webhook_endpoint"]>, "id" | "account_id" | "mode" | "owner" | "lease_until">;

/** Sets columns of an endpoint. */
export async function updateEndpoint(db: Db, id: string, changes: Changes): Promise<void> {
  await db.updateTable("webhook_endpoint").set(changes).where("id", "=", id).execute();
}

/** Returns an endpoint that is not deleted; with `lock`, locks it until the commit. */
export async function findEndpointRow(
  db: Db,
  { endpointId, owner }: EndpointQuery,
  options: { lock?: boolean } = {},
): Promise<EndpointRow | undefined> {
  let query = db
    .selectFrom("webhook_endpoint")
    .selectAll()
    .where("id", "=", endpointId)
    .where("deleted_at", "is", null);
  if (owner) query = query.where("account_id", "=", owner.accountId).where("mode", "=", owner.mode);
  return (options.lock ? query.forNoKeyUpdate() : query).executeTakeFirst();
}

/** Returns the endpoints of an account and mode that are not deleted, the oldest first. */
export async function listEndpointRows(db: Db, owner: { accountId: string; mode: Mode }): Promise<EndpointRow[]> {
  return db
    .selectFrom("webhook_endpoint")
    .selectAll()
    .where("account_id", "=", owner.accountId)
    .where("mode", "=", owner.mode)
    .where("deleted_at", "is", null)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
}

/** Notes that an endpoint accepts events. */
export async function clearFailure(db: Db, id: string): Promise<void> {
  await db
    .updateTable("webhook_endpoint")
    .set({ failing_since: null })
    .where("id", "=", id)
    .where("failing_since", "is not", null)
    .execute();
}

/**
 * Notes that an endpoint does not accept events. Keeps the time of the first failure since the last success, unless the
 * last failure was before `restartBefore`.
 */
export async function noteFailure(db: Db, id: string, args: { at: Date; restartBefore: Date }): Promise<void> {
  await sql`
    update webhook_endpoint set failed_at = ${args.at}, failing_since =
      case when failing_since is null or failed_at < ${args.restartBefore} then ${args.at} else failing_since end
    where id = ${id}`.execute(db);
}

/** Notes that an endpoint is slow, until a time. An earlier note that lasts longer stays. */
export async function noteSlow(db: Db, id: string, until: Date): Promise<void> {
  await sql`update webhook_endpoint set slow_until = greatest(slow_until, ${until}) where id = ${id}`.execute(db);
}

/** Returns how many endpoints of an account and mode were registered after a time, deleted ones included. */
export async function countEndpointsSince(
  db: Db,
  { accountId, mode, since }: { accountId: string; mode: Mode; since: Date },
): Promise<number> {
  const { count } = await db
    .selectFrom("webhook_endpoint")
    .select(({ fn }) => fn.countAll<string>().as("count"))
    .where("account_id", "=", accountId)
    .where("mode", "=", mode)
    .where("created_at", ">", since)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/**
 * The time that the pending deliveries of a deleted endpoint are given up within, milliseconds. Longer than any wait between
 * attempts. Rows of endpoints are never deleted, so the sweep must not read those that were deleted earlier.
 */
const CLOSING_MS = 24 * 60 * 60_000;

/** Selects the endpoints `e` that may have pending deliveries. */
export const mayBeDue = (now: Date) =>
  sql`(e.deleted_at is null or e.deleted_at > ${new Date(now.getTime() - CLOSING_MS)})`;

/**
 * True for an endpoint `e` that was disabled within the last day: it still gets notices. A stolen login writes any `disabled_at`, so
 * the time is the one that a trigger has written.
 */
export const getsNotices = sql<boolean>`(e.deleted_at is null and exists (
  select from webhook_former_filter f where f.endpoint_id = e.id and f.until > now() - interval '1 day'))`;

/** True if events of the priority `p` are sent to the endpoint `e`. A worker gives up the others of a deleted or disabled endpoint. */
export const isSent = sql<boolean>`(
  case when e.deleted_at is null and e.disabled_at is null then true else p.priority = 0 and ${getsNotices} end)`;

/**
 * Returns when the longest-waiting due event of the endpoint `e` became due. Each priority has its own range of the index. What is
 * not sent is due: a worker gives it up.
 */
const oldestDue = (now: Date) => sql`(
  select min(first.due_at) from (values (0), (1), (2)) p (priority) cross join lateral (
    select due_at from webhook_delivery
    where endpoint_id = e.id and priority = p.priority
      and due_at <= case when ${isSent} then ${now}::timestamptz else 'infinity' end
    order by due_at limit 1
  ) first)`;

/**
 * When a lease ended longer ago than this, no sweep has run since, milliseconds: Redis was unavailable, and the endpoint's jobs may be
 * lost.
 */
const UNSWEPT_MS = 30_000;

/** An endpoint whose job has to be enqueued. */
export type DueEndpoint = { id: string; retry: number; lost: boolean; slow: boolean };

/**
 * Takes endpoints with due events that no worker delivers to, the longest due first. Each endpoint goes to one sweep, and
 * is due once more at `retryAt`. `lost`: an earlier job for the endpoint was enqueued or had begun, and never finished. Such an endpoint
 * is due once more after half the time for which its events have waited, at most ten minutes: most such jobs are not lost but wait in
 * their queue, which must not grow with the sweeps. After an outage of Redis it is due at `retryAt`: its events have waited for the outage
 * and not in a queue, and a process that has no connection yet may not have enqueued the job. `slow`: a request to it took seconds of late.
 */
export async function takeDueEndpoints(
  db: Db,
  args: { now: Date; retryAt: Date; limit: number },
): Promise<DueEndpoint[]> {
  const { rows } = await sql<DueEndpoint>`
    with found as (${selectDueEndpoints(args)})
    update webhook_endpoint e set due_retries = e.due_retries + 1, owner = null,
      lease_until = greatest(${args.retryAt}::timestamptz, case when e.lease_until > ${new Date(args.now.getTime() - UNSWEPT_MS)}
        then ${args.now}::timestamptz + least(interval '10 minutes', (${args.now}::timestamptz - found.since) / 2) end)
    from found where e.id = found.id
    returning e.id, e.due_retries as retry, found.lost, coalesce(e.slow_until > ${args.now}, false) as slow`.execute(
    db,
  );
  return rows;
}

/** Builds the query of the endpoints that `takeDueEndpoints` takes. Exported for a test of its query plan. */
export function selectDueEndpoints({ now, limit }: { now: Date; limit: number }) {
  return sql`
    select e.id, oldest.since, e.lease_until is not null as lost
    from webhook_endpoint e cross join lateral (select ${oldestDue(now)} as since) oldest
    where ${mayBeDue(now)}
      and (e.lease_until is null or e.lease_until <= ${now}) and oldest.since is not null
    order by oldest.since limit ${limit} for no key update of e skip locked`;
}

/**
 * Leases an endpoint to `owner`, or renews its lease. Returns undefined while another worker has the lease, and with `onlyFast` for an
 * endpoint that is slow now.
 */
export async function leaseEndpoint(
  db: Db,
  args: { id: string; owner: string; now: Date; until: Date; onlyFast: boolean },
): Promise<EndpointRow | undefined> {
  const { rows } = await sql<EndpointRow>`
    update webhook_endpoint set owner = ${args.owner}, lease_until = ${args.until}
    where id = ${args.id} and (owner is null or owner = ${args.owner} or lease_until <= ${args.now})
      and (not ${args.onlyFast} or slow_until is null or slow_until <= ${args.now})
    returning *`.execute(db);
  return rows[0];
}

/**
 * Releases an endpoint. When its job `goesOn` in the queue, any worker may lease it, but for the rest of the lease no sweep takes it: each
 * run would leave one job more.
 */
export async function releaseEndpoint(
  db: Db,
  { id, owner, goesOn }: { id: string; owner: string; goesOn: boolean },
): Promise<void> {
  await db
    .updateTable("webhook_endpoint")
    .set({ owner: null, ...(goesOn ? {} : { lease_until: null }) })
    .where("id", "=", id)
    .where("owner", "=", owner)
    .execute();
}
