import { type Insertable, type Selectable, sql, type Updateable } from "kysely";
import type { Db, Mode, Tables } from "../tables.ts";

export type EndpointRow = Selectable<Tables["webhook_endpoint"]>;

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

/** Sets the URL, the secrets or the deletion time of an endpoint. */
export async function updateEndpoint(
  db: Db,
  id: string,
  changes: Omit<Updateable<Tables["webhook_endpoint"]>, "id" | "account_id" | "mode" | "owner" | "lease_until">,
): Promise<void> {
  await db.updateTable("webhook_endpoint").set(changes).where("id", "=", id).execute();
}

/** Returns the endpoint of an account and mode that is not deleted; with `lock`, locks it until the commit. */
export async function findLiveEndpoint(
  db: Db,
  args: { accountId: string; mode: Mode },
  options: { lock?: boolean } = {},
): Promise<EndpointRow | undefined> {
  const query = db
    .selectFrom("webhook_endpoint")
    .selectAll()
    .where("account_id", "=", args.accountId)
    .where("mode", "=", args.mode)
    .where("deleted_at", "is", null);
  return (options.lock ? query.forNoKeyUpdate() : query).executeTakeFirst();
}

/**
 * Takes endpoints with due events that no worker delivers to, the longest due first. Each endpoint goes to one sweep, and
 * is due once more at `retryAt`. `lost`: an earlier job for the endpoint was enqueued or had begun, and never finished.
 */
export async function takeDueEndpoints(
  db: Db,
  args: { now: Date; retryAt: Date; limit: number },
): Promise<{ id: string; retry: number; lost: boolean }[]> {
  const { rows } = await sql<{ id: string; retry: number; lost: boolean }>`
    update webhook_endpoint e set due_retries = e.due_retries + 1, lease_until = ${args.retryAt}, owner = null
    from (
      select e.id, e.lease_until is not null as lost from webhook_endpoint e cross join lateral (
        select min(at) as since from (
          (select due_at as at from webhook_delivery where endpoint_id = e.id and due_at <= ${args.now} order by due_at limit 1)
          union all (select at from webhook_fanout where endpoint_id = e.id order by at limit 1)
        ) waiting
      ) oldest
      where (e.lease_until is null or e.lease_until <= ${args.now}) and oldest.since is not null
      order by oldest.since limit ${args.limit} for no key update of e skip locked
    ) found
    where e.id = found.id
    returning e.id, e.due_retries as retry, found.lost`.execute(db);
  return rows;
}

/** Leases an endpoint to `owner`, or renews its lease. Returns undefined while another worker has the lease. */
export async function leaseEndpoint(
  db: Db,
  args: { id: string; owner: string; now: Date; until: Date },
): Promise<EndpointRow | undefined> {
  const { rows } = await sql<EndpointRow>`
    update webhook_endpoint set owner = ${args.owner}, lease_until = ${args.until}
    where id = ${args.id} and (owner is null or owner = ${args.owner} or lease_until <= ${args.now})
    returning *`.execute(db);
  return rows[0];
}

/** Releases an endpoint. */
export async function releaseEndpoint(db: Db, args: { id: string; owner: string }): Promise<void> {
  await db
    .updateTable("webhook_endpoint")
    .set({ owner: null, lease_until: null })
    .where("id", "=", args.id)
    .where("owner", "=", args.owner)
    .execute();
}
