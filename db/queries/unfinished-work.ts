import { sql } from "kysely";
import type { Db } from "../tables.ts";
import { mayBeDue } from "./webhook-endpoints.ts";

/** Work that has not ended. `since` is when it could have begun. */
export type UnfinishedWork = {
  kind: "payment" | "attempt" | "transfer" | "refund" | "settlement" | "webhooks" | "chain";
  id: string;
  /** Null for what concerns many payments: a settlement, the webhooks of an endpoint, a chain. */
  payment_id: string | null;
  state: string;
  since: Date;
  error: string | null;
};

/**
 * Returns work that is older than `before` and has not ended, the oldest first, at most `limit` rows of each kind:
 * - payments past their deadline, attempts that are not verified, transfers that are not final
 * - refunds and settlements that are not paid, and accumulating settlements past their time
 * - endpoints whose webhooks wait past their retry, and endpoints that were disabled because they failed
 * - chains whose watcher has not reached the head
 * It leaves out what waits for a buyer, and what the pages of held payouts show.
 */
export async function listUnfinishedWork(
  db: Db,
  { before, now, limit }: { before: Date; now: Date; limit: number },
): Promise<UnfinishedWork[]> {
  // Longer than the sweep's longest backoff, so every overdue row lies below it in the index.
  const pushed = sql`${now}::timestamptz + interval '2 minutes'`;
  const { rows } = await sql<UnfinishedWork>`
    select * from (
      (select 'payment' as kind, id, id as payment_id, state, expires_at as since, null as error from payment
        where due_at <= ${pushed} and expires_at <= ${before} order by due_at limit ${limit})
      union all
      (select 'attempt', a.id, a.payment_id, a.state, a.created_at, null from attempt a
        join payment_option o on o.id = a.option_id
        where a.due_at <= ${pushed} and a.created_at <= ${before} and o.kind <> 'push' order by a.due_at limit ${limit})
      union all
      (select 'transfer', t.id, coalesce(t.payment_id, r.payment_id), t.state, greatest(t.created_at, t.hold_until), t.last_error
        from transfer t left join refund r on r.id = t.refund_id
        where t.state not in ('confirmed', 'ended') and t.state <> 'awaited'
          and greatest(t.created_at, t.hold_until) <= ${before} order by t.created_at limit ${limit})
      union all
      (select 'refund', id, payment_id, state, created_at, null from refund
        where state in ('due', 'held', 'paying') and state <> 'held' and created_at <= ${before}
        order by created_at limit ${limit})
      union all
      (select 'settlement', s.id, null, s.state, coalesce(s.closed_at, s.created_at), q.blocked_by from settlement s
        left join payout_queue q on q.kind = 'settlement' and q.merchant_id = s.merchant_id and q.asset = s.asset
        where s.state = 'due' and coalesce(s.closed_at, s.created_at) <= ${before} and q.blocked_by is distinct from 'held'
        order by 5 limit ${limit})
      union all
      (select 'settlement', id, null, state, created_at, null from settlement
        where state = 'paying' and created_at <= ${before} order by created_at limit ${limit})
      union all
      (select 'settlement', s.id, null, s.state, s.due_at, q.blocked_by from settlement s
        left join payout_queue q on q.kind = 'settlement' and q.merchant_id = s.merchant_id and q.asset = s.asset
        where s.due_at <= ${before} and s.state = 'accumulating'
          and (q.blocked_by is null or q.blocked_by not in ('minimum', 'held'))
        order by s.due_at limit ${limit})
      union all
      (select 'webhooks', e.id, null, 'wait past their retry', min(first.due_at), max(first.last_outcome)
        from webhook_endpoint e cross join (values (0), (1), (2)) p (priority) cross join lateral (
          select due_at, last_outcome from webhook_delivery d
          where d.endpoint_id = e.id and d.priority = p.priority and d.due_at <= ${before} order by due_at limit 1
        ) first where ${mayBeDue(now)} group by e.id order by 5 limit ${limit})
      union all
      (select 'webhooks', id, null, 'endpoint is disabled', disabled_at, disabled_reason from webhook_endpoint
        where disabled_at <= ${before} and disabled_reason = 'failing' and deleted_at is null
        order by disabled_at limit ${limit})
      union all
      (select 'chain', c.chain, null,
          case when c.lease_until > ${now} then 'watcher is behind the head' else 'has no watcher' end,
          coalesce(c.reached_head_at, c.created_at), null
        from chain_cursor c where coalesce(c.reached_head_at, c.created_at) <= ${before})
    ) found order by since`.execute(db);
  return rows;
}

/** A transfer that no lane takes until the end of its hold. */
export type HeldTransfer = {
  id: string;
  payment_id: string | null;
  chain: string;
  purpose: string;
  hold_until: Date;
  retries: number;
  last_error: string | null;
};

/** Returns ready transfers that are on hold, those that wait longest first. */
export async function listHeldTransfers(db: Db, { now, limit }: { now: Date; limit: number }): Promise<HeldTransfer[]> {
  return db
    .selectFrom("transfer")
    .select(["id", "payment_id", "chain", "purpose", "retries", "last_error"])
    .select(sql<Date>`hold_until`.as("hold_until"))
    .where("state", "=", "ready")
    .where("hold_until", ">", now)
    .orderBy("hold_until", "desc")
    .limit(limit)
    .execute();
}

/** How well a webhook endpoint accepts events. */
export type EndpointHealth = {
  id: string;
  account_id: string;
  mode: string;
  /** The scheme, host and port of its URL. */
  origin: string | null;
  failing_since: Date | null;
  failed_at: Date | null;
  disabled_at: Date | null;
  disabled_reason: string | null;
  /** The time of the oldest event that it has not accepted yet. */
  oldest_pending: Date | null;
};

/** Returns webhook endpoints: disabled ones first, then failing ones, then by the oldest event that waits. */
export async function listEndpointHealth(db: Db, limit: number): Promise<EndpointHealth[]> {
  const { rows } = await sql<EndpointHealth>`
    select e.id, e.account_id, e.mode, e.origin, e.failing_since, e.failed_at, e.disabled_at, e.disabled_reason,
      pending.at as oldest_pending
    from webhook_endpoint e left join lateral (
      select at from webhook_delivery d where d.endpoint_id = e.id and d.state = 'pending' order by at limit 1
    ) pending on true
    where e.deleted_at is null
    order by e.disabled_at is null, e.failing_since is null, pending.at nulls last, e.id limit ${limit}`.execute(db);
  return rows;
}
