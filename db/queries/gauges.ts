import { type RawBuilder, sql } from "kysely";
import type { Db, Verification } from "../tables.ts";
import { isQueueOfRefund, type Obstacle } from "./payout-queue.ts";
import { HELD_AFTER } from "./transfer-counts.ts";
import { mayBeDue } from "./webhook-endpoints.ts";

/** Since when the oldest of the rows has waited that one queue serves, with what decides about the queue; null where no row waits. */
export type Overdue = { since: Date | null } & (
  | { table: "payment" | "settlement" | "refund" | "chain_cursor" }
  | { table: "attempt"; verification: Verification }
  | { table: "transfer"; chain: string; smart_wallet: boolean }
  | { table: "webhook_delivery"; slow: boolean }
);

/** SQL: a queue of payouts `q` waits for its asset, which has left the networks file, alone or with its chain. */
const waitsForAsset = (chains: readonly string[]) =>
  sql`(q.chain <> all(${chains}::text[]) or coalesce(q.blocked_by, '') = 'unknown_asset')`;
/** SQL: a queue of settlements `q` waits for its merchant or an operator, and would hide a later payout that waits for the service. */
const waitsForDecision = (chains: readonly string[]) =>
  sql`(${waitsForAsset(chains)} or coalesce(q.blocked_by, '') in ('no_destination', 'not_served', 'refund_pending'))`;
/** SQL: the payout of a settlement `s` is held because it fails in simulation. */
const isHeld = sql`exists (
  select from transfer t where t.purpose = 'settlement' and t.settlement_id = s.id and t.state = 'ready'
    and t.retries >= ${HELD_AFTER})`;
/** SQL: a condition holds for the queue `q` of a refund `r`. */
const isOfQueue = (condition: RawBuilder<unknown>) =>
  sql`exists (select from payout_queue q where ${isQueueOfRefund("q", "r")} and ${condition})`;
/** SQL: a refund `r` waits behind one of these obstacles. */
const isBlocked = (...obstacles: Obstacle[]) => isOfQueue(sql`q.blocked_by = any(${obstacles})`);

/**
 * Returns, for each table and each kind of its rows that a queue of its own serves, since when the oldest row has waited for its job.
 *
 * A sweep postpones `due_at`, so the wait is counted from a time that does not move: a payment's deadline, the creation
 * time of the other rows, and the end of the hold of a transfer that failed. A settlement waits from the time when it is
 * closed until its payout arrives, unless an operator or the merchant has to decide first (`waitsForDecision`), an operator holds
 * the merchant's payouts, or its payout is held in simulation. A refund waits until it begins, unless its asset has left the
 * networks file, or its merchant's balance or the treasury's inventory does not cover it. A push does not count: it waits for its
 * block, not for a job.
 * For a chain this only shows that no sweep has run; `listChainStatuses` has the age of its cursor.
 * @param args.chains the chains of the networks file
 */
export async function listOldestOverdue(
  db: Db,
  { chains, now }: { chains: readonly string[]; now: Date },
): Promise<Overdue[]> {
  // Longer than the sweep's longest backoff, so every overdue row lies below it in the index.
  const pushed = sql`${now}::timestamptz + interval '2 minutes'`;
  const { rows } = await sql<Overdue>`
    select 'payment' as table, min(expires_at) as since,
      null::text as verification, null::text as chain, null::boolean as smart_wallet, null::boolean as slow
      from payment where due_at <= ${pushed} and expires_at <= ${now}
    union all select 'attempt', min(a.created_at), a.verification, null, null, null
      from attempt a join payment_option o on o.id = a.option_id
      where a.due_at <= ${pushed} and a.created_at <= ${now} and o.kind <> 'push' group by a.verification
    union all select 'transfer', min(greatest(created_at, hold_until)), null, chain, smart_wallet, null from transfer
      where due_at <= ${pushed} and greatest(created_at, hold_until) <= ${now} group by chain, smart_wallet
    union all select 'settlement', least(
      (select min(oldest.at) from payout_queue q
        join merchant m on m.id = q.merchant_id and m.payouts_held_at is null
        cross join lateral (
          select coalesce(closed_at, created_at) as at from settlement s
          where s.merchant_id = q.merchant_id and s.asset = q.asset and s.state = 'due' order by 1 limit 1
        ) oldest
        where q.kind = 'settlement' and q.due_at is not null and oldest.at <= ${now} and not ${waitsForDecision(chains)}),
      (select min(s.due_at) from settlement s
        join merchant m on m.id = s.merchant_id and m.payouts_held_at is null
        where s.due_at <= ${now} and s.state = 'accumulating' and not exists (
          select from payout_queue q where q.kind = 'settlement' and q.merchant_id = s.merchant_id and q.asset = s.asset
            and (coalesce(q.blocked_by, '') = 'minimum' or ${waitsForDecision(chains)}))),
      (select min(coalesce(s.closed_at, s.created_at)) from settlement s
        where coalesce(s.closed_at, s.created_at) <= ${now} and s.state = 'paying' and not ${isHeld})), null, null, null, null
    union all select 'refund', min(r.created_at), null, null, null, null from refund r
      where r.created_at <= ${now} and r.state = 'due' and not ${isBlocked("balance_short", "inventory_short")}
        and not ${isOfQueue(waitsForAsset(chains))}
    union all select 'chain_cursor', min(due_at), null, null, null, null from chain_cursor where due_at <= ${now}
    union all select 'webhook_delivery', min(at), null, null, null, false from webhook_fanout where at <= ${now}
    union all select 'webhook_delivery', min(first.due_at), null, null, null, coalesce(e.slow_until > ${now}, false)
      from webhook_endpoint e cross join (values (0), (1), (2)) p (priority) cross join lateral (
        select due_at from webhook_delivery d
        where d.endpoint_id = e.id and d.priority = p.priority and d.due_at <= ${now} order by due_at limit 1
      ) first where ${mayBeDue(now)} group by 6`.execute(db);
  return rows;
}

/** Returns when the oldest refund was requested that its merchant's balance does not cover; null when there is none. */
export async function findOldestUncoveredRefund(db: Db): Promise<Date | null> {
  const { rows } = await sql<{ since: Date | null }>`
    select min(r.created_at) as since from refund r where r.state = 'due' and ${isBlocked("balance_short")}`.execute(
    db,
  );
  return rows[0]?.since ?? null;
}

/** Returns the time of the oldest event that is still to be delivered to its endpoint; null when there is none. */
export async function findOldestPendingEvent(db: Db): Promise<Date | null> {
  const { rows } = await sql<{ at: Date | null }>`
    select least((select min(at) from webhook_delivery where state = 'pending'), (select min(at) from webhook_fanout)) as at`.execute(
    db,
  );
  return rows[0]?.at ?? null;
}

/** The transactions that a lane has in flight. Fees are wei per gas; null when there is no such transaction. */
export type LaneStatus = {
  chain: string;
  address: string;
  next_nonce: number;
  /** The number of used nonces whose transaction is in no block yet. */
  in_flight: number;
  /** When a transaction with the lowest of them was first signed. */
  oldest_at: Date | null;
  /** The maximum fee of the newest transaction, included or not. */
  newest_max_fee: bigint | null;
  /** The fees of the newest transaction with the lowest nonce that is in no block yet. */
  lowest_max_fee: bigint | null;
  lowest_priority_fee: bigint | null;
};

/** Returns every lane with its transactions in flight. Reads only rows, so every process returns the same. */
export async function listLaneStatuses(db: Db): Promise<LaneStatus[]> {
  const { rows } = await sql<LaneStatus>`
    with unincluded as (
      select lane_id, nonce, replacement, created_at, max_fee_per_gas, max_priority_fee_per_gas from transaction
      where state in ('signed', 'broadcast', 'accepted') and not exists (
        select from transaction twin
        where twin.lane_id = transaction.lane_id and twin.nonce = transaction.nonce and twin.state = 'included')
    )
    select lane.chain, lane.address, lane.next_nonce,
      (select count(distinct nonce)::int from unincluded u where u.lane_id = lane.id) as in_flight,
      lowest.first_at as oldest_at,
      (select max_fee_per_gas from transaction t where t.lane_id = lane.id order by nonce desc, replacement desc limit 1)
        as newest_max_fee,
      lowest.max_fee_per_gas as lowest_max_fee,
      lowest.max_priority_fee_per_gas as lowest_priority_fee
    from lane left join lateral (
      select max_fee_per_gas, max_priority_fee_per_gas, min(created_at) over (partition by nonce) as first_at
      from unincluded u where u.lane_id = lane.id
      order by nonce, replacement desc limit 1
    ) lowest on true
    order by lane.id`.execute(db);
  return rows;
}

/** How far a chain has been read, and its base fee. */
export type ChainStatus = {
  chain: string;
  cursor: number;
  /** The height up to which everything is final and booked. */
  final: number;
  /** When a watcher last reached the head; before the first time, when its cursor was created. */
  reached_head_at: Date;
  /** The base fee of the newest block that was read, wei per gas. */
  base_fee: bigint | null;
  /** True while a transfer is ready to be relayed. */
  waiting: boolean;
};

/** Returns every watched chain. Reads only rows. */
export async function listChainStatuses(db: Db, now: Date): Promise<ChainStatus[]> {
  const { rows } = await sql<ChainStatus>`
    select cursor.chain, cursor.number as cursor, cursor.final_number as final,
      coalesce(cursor.reached_head_at, cursor.created_at) as reached_head_at,
      newest.base_fee,
      exists (select from transfer t where t.chain = cursor.chain and t.state = 'ready'
        and (t.hold_until is null or t.hold_until <= ${now})) as waiting
    from chain_cursor cursor left join lateral (
      select base_fee from chain_block b where b.chain = cursor.chain order by number desc limit 1
    ) newest on true
    order by cursor.chain`.execute(db);
  return rows;
}
