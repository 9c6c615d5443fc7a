import { type RawBuilder, sql } from "kysely";
import type { RefusalReason } from "../../signer/refusals.ts";
import type { Db } from "../tables.ts";

export type PayoutKind = "settlement" | "refund";

/**
 * The obstacles that can block a queue of payouts:
 * - `held`: an operator holds the merchant's payouts.
 * - `no_destination`: no destination is registered.
 * - `not_served`: screening refuses the destination.
 * - `refund_pending`: a refund from the same balance comes first.
 * - `minimum`: the settlement is below the destination's minimum.
 * - `unrecorded_payout`: the chain shows another payout of the merchant, a refund that has drawn on the same balance or has sent more than
 *   its row says, or a later refund of the same payment, that a restored database has lost.
 * - `unknown_asset`: the networks file does not contain the asset.
 * - `balance_short`, `inventory_short`: the merchant's balance, or the treasury's inventory of the asset, is too low.
 * Any other obstacle is the reason of the signer that refuses the payout (signer/refusals.ts).
 */
export const obstacles = [
  "held",
  "no_destination",
  "not_served",
  "refund_pending",
  "minimum",
  "unrecorded_payout",
  "unknown_asset",
  "balance_short",
  "inventory_short",
] as const;
export type Obstacle = (typeof obstacles)[number] | RefusalReason;
/** Obstacles that depend on the amount: a smaller payout of the same queue may succeed. */
export const amountObstacles: readonly Obstacle[] = ["balance_short", "inventory_short", "funds_short", "limit_payout"];

export type QueueKey = { kind: PayoutKind; merchant_id: string; asset: string; chain: string };
export type TakenQueue = QueueKey & { version: number; blocked: boolean };

const key = sql`q.kind, q.merchant_id, q.asset, q.chain`;
const isKey = ({ kind, merchant_id, asset, chain }: QueueKey) =>
  sql`q.kind = ${kind} and q.merchant_id = ${merchant_id} and q.asset = ${asset} and q.chain = ${chain}`;

/** SQL: a queue is that of a refund. */
export const isQueueOfRefund = (queue: string, refund: string): RawBuilder<boolean> => {
  const [q, r] = [sql.id(queue), sql.id(refund)];
  return sql`${q}.kind = 'refund' and ${q}.merchant_id = coalesce(${r}.merchant_id, '')
    and ${q}.asset = coalesce(${r}.owed_asset, ${r}.asset) and ${q}.chain = split_part(${r}.asset, '/', 1)`;
};

/** SQL: the waiting rows of a queue `q`, by kind. An index serves each of them. */
const rowsOf: Record<PayoutKind, RawBuilder<unknown>> = {
  settlement: sql`settlement r where r.merchant_id = q.merchant_id and r.asset = q.asset and r.due_at is not null
    and r.state in ('due', 'accumulating')`,
  refund: sql`refund r where coalesce(r.merchant_id, '') = q.merchant_id and coalesce(r.owed_asset, r.asset) = q.asset
    and split_part(r.asset, '/', 1) = q.chain and r.due_at is not null and r.state = 'due'`,
};

/**
 * Takes at most `limit` due queues of each chain, the longest due first. Each queue goes to one caller and becomes due
 * again later (exponential backoff up to one minute), until its job updates it.
 */
export async function takeDueQueues(
  db: Db,
  args: { kind: PayoutKind; chains: readonly string[]; now: Date; limit: number },
): Promise<TakenQueue[]> {
  const { rows } = await selectDueQueues(args).execute(db);
  return rows;
}

/** Builds the statement of `takeDueQueues`. Exported for a test of its query plan. */
export function selectDueQueues(args: { kind: PayoutKind; chains: readonly string[]; now: Date; limit: number }) {
  const { kind, chains, now, limit } = args;
  return sql<TakenQueue>`
    update payout_queue q set version = q.version + 1, due_retries = q.due_retries + 1,
      due_at = ${now}::timestamptz + least(60, 5 * power(2, least(q.due_retries, 4))) * interval '1 second'
    from unnest(${chains}::text[]) as c (chain) cross join lateral (
      select d.kind, d.merchant_id, d.asset, d.chain from payout_queue d
      where d.kind = ${kind} and d.chain = c.chain and d.due_at <= ${now}
      order by d.due_at limit ${limit} for update skip locked
    ) due
    where q.kind = due.kind and q.merchant_id = due.merchant_id and q.asset = due.asset and q.chain = due.chain
    returning ${key}, q.version, q.blocked_by is not null as blocked`;
}

/** Returns those of these chains that have a due queue of payouts of a kind. */
export async function listDueChains(
  db: Db,
  args: { kind: PayoutKind; chains: readonly string[]; now: Date },
): Promise<string[]> {
  const { rows } = await sql<{ chain: string }>`
    select c.chain from unnest(${args.chains}::text[]) as c (chain) where exists (
      select from payout_queue d where d.kind = ${args.kind} and d.chain = c.chain and d.due_at <= ${args.now})`.execute(
    db,
  );
  return rows.map(({ chain }) => chain);
}

/** Returns the ids of at most `limit` due rows of each queue. Rows whose amount was not covered before come last. */
export async function listQueuedIds(
  db: Db,
  args: { kind: PayoutKind; queues: readonly (QueueKey & { limit: number })[]; now: Date },
): Promise<string[][]> {
  const { kind, queues, now } = args;
  if (queues.length === 0) return [];
  const { rows } = await sql<{ ids: string[] }>`
    select array(
      select r.id from ${rowsOf[kind]} and r.due_at <= ${now} order by r.due_retries, r.due_at limit q.most
    ) as ids
    from unnest(${queues.map((one) => one.merchant_id)}::text[], ${queues.map((one) => one.asset)}::text[],
      ${queues.map((one) => one.chain)}::text[], ${queues.map((one) => one.limit)}::int[])
      with ordinality as q (merchant_id, asset, chain, most, place)
    order by q.place`.execute(db);
  return rows.map(({ ids }) => ids);
}

/**
 * Postpones queues until their next row is due, or indefinitely when they have none. Skips queues that have changed meanwhile. Locks them in
 * the order in which bookings wake them (avoids deadlock).
 */
export async function restQueues(db: Db, args: { kind: PayoutKind; queues: readonly TakenQueue[] }): Promise<void> {
  const { kind, queues } = args;
  if (queues.length === 0) return;
  await sql`
    with locked as (
      select q.merchant_id, q.asset, q.chain from payout_queue q
      join unnest(${queues.map((one) => one.merchant_id)}::text[], ${queues.map((one) => one.asset)}::text[],
        ${queues.map((one) => one.chain)}::text[], ${queues.map((one) => one.version)}::bigint[])
        as idle (merchant_id, asset, chain, version)
        on q.merchant_id = idle.merchant_id and q.asset = idle.asset and q.chain = idle.chain
      where q.kind = ${kind} and q.version = idle.version
      order by q.merchant_id collate "C", q.asset collate "C", q.chain collate "C" for update of q
    )
    update payout_queue q set due_at = (select min(r.due_at) from ${rowsOf[kind]}), due_retries = 0,
      blocked_by = null, blocked_at = null
    from locked l
    where q.kind = ${kind} and q.merchant_id = l.merchant_id and q.asset = l.asset and q.chain = l.chain`.execute(db);
}

/** A row with its queue, both read at the same time. */
export type QueuedRow = QueueKey & { id: string; state: string; version: number; is_fresh: boolean };

/** Returns rows with their queues. `is_fresh`: the queue is not blocked and was not taken since its last success. */
export async function listQueuedRows(db: Db, args: { kind: PayoutKind; ids: readonly string[] }): Promise<QueuedRow[]> {
  const of = {
    settlement: sql`settlement r join payout_queue q on q.kind = 'settlement' and q.merchant_id = r.merchant_id
      and q.asset = r.asset and q.chain = split_part(r.asset, '/', 1)`,
    refund: sql`refund r join payout_queue q on ${isQueueOfRefund("q", "r")}`,
  };
  const { rows } = await sql<QueuedRow>`
    select r.id, r.state, ${key}, q.version, q.due_retries = 0 and q.blocked_by is null as is_fresh
    from ${of[args.kind]} where r.id = any(${args.ids})`.execute(db);
  return rows;
}

/**
 * Stores the obstacle that blocks a queue. Returns false and leaves the queue due when a change since `version` was read
 * may have removed the obstacle. A blocked queue is checked after five minutes and then every ten minutes; a change that
 * removes the obstacle wakes it earlier. With a transient obstacle it is checked within a minute, as `takeDueQueues` has set it.
 */
export async function blockQueue(
  db: Db,
  args: QueueKey & { version: number; obstacle: Obstacle; isTransient?: boolean; now: Date },
): Promise<boolean> {
  const result = await sql`
    update payout_queue q set blocked_by = ${args.obstacle},
      blocked_at = case when q.blocked_by = ${args.obstacle} then q.blocked_at else ${args.now} end,
      due_at = case when ${args.isTransient === true} then coalesce(q.due_at, ${args.now}) else ${args.now}::timestamptz + case when q.due_retries < 2 then interval '5 minutes' else interval '10 minutes' end end
    where ${isKey(args)} and q.version = ${args.version}`.execute(db);
  return result.numAffectedRows === 1n;
}

/** Makes a queue due at once after some of its payouts have begun, because it may have more. */
export async function resumeQueue(db: Db, args: QueueKey & { now: Date }): Promise<void> {
  await sql`
    update payout_queue q set version = version + 1, blocked_by = null, blocked_at = null, due_retries = 0, due_at = ${args.now}
    where ${isKey(args)}`.execute(db);
}

/** Moves rows whose amount was not covered behind the other rows of their queue. */
export async function deferRows(db: Db, args: { kind: PayoutKind; ids: readonly string[] }): Promise<void> {
  await sql`update ${sql.table(args.kind)} set due_retries = due_retries + 1 where id in (
    select id from ${sql.table(args.kind)} where id = any(${args.ids}) and due_at is not null order by id for update)`.execute(
    db,
  );
}

/** Returns the settlement queues of these merchants that an obstacle other than an amount blocks. */
export async function listBlockedKeys(
  db: Db,
  merchantIds: readonly string[],
): Promise<{ merchant_id: string; asset: string }[]> {
  const { rows } = await sql<{ merchant_id: string; asset: string }>`
    select q.merchant_id, q.asset from payout_queue q
    where q.kind = 'settlement' and q.merchant_id = any(${merchantIds}) and q.blocked_by <> all(${amountObstacles})`.execute(
    db,
  );
  return rows;
}

/** Returns those of these settlements that still accumulate, and whether an operator holds their merchant. */
export async function listStillAccumulating(db: Db, ids: readonly string[]): Promise<{ id: string; held: boolean }[]> {
  const { rows } = await sql<{ id: string; held: boolean }>`
    select s.id, m.payouts_held_at is not null as held from settlement s join merchant m on m.id = s.merchant_id
    where s.id = any(${ids}) and s.state = 'accumulating'`.execute(db);
  return rows;
}

/** Wakes a merchant's settlement queue of an asset, whatever blocks it. */
export async function wakeSettlements(db: Db, args: { merchantId: string; asset: string }): Promise<void> {
  await sql`select wake_payouts('settlement', ${args.merchantId}, ${args.asset})`.execute(db);
}

/** Wakes a merchant's refund queue of an asset, whatever blocks it. */
export async function wakeRefunds(db: Db, args: { merchantId: string; asset: string }): Promise<void> {
  await sql`select wake_payouts('refund', ${args.merchantId}, ${args.asset})`.execute(db);
}

/** Wakes the queues of a chain that an amount blocks. */
export const wakeShortPayouts = (db: Db, chain: string): Promise<void> => wakeBlocked(db, isShort(chain));

/** Wakes the queues of a chain that wait for payouts which a restored database has lost. */
export const wakeUnrecorded = (db: Db, chain: string): Promise<void> =>
  wakeBlocked(db, sql`chain = ${chain} and ${isUnrecorded}`);

/**
 * Wakes the queues of a chain that an amount blocks, and those of all chains that wait for payouts which a restored database has lost: a
 * refund on one chain may have been drawn on a balance in an asset of another one.
 */
export const wakeResolved = (db: Db, chain: string): Promise<void> =>
  wakeBlocked(db, sql`(${isShort(chain)} or ${isUnrecorded})`);

const isShort = (chain: string) => sql`chain = ${chain} and blocked_by = any(${amountObstacles})`;
const isUnrecorded = sql`blocked_by = 'unrecorded_payout'`;

async function wakeBlocked(db: Db, where: RawBuilder<unknown>): Promise<void> {
  await sql`
    update payout_queue set version = version + 1, due_retries = 0, due_at = least(due_at, blocked_at), blocked_by = null,
      blocked_at = null
    where (kind, merchant_id, asset, chain) in (
      select kind, merchant_id, asset, chain from payout_queue where ${where}
      order by merchant_id collate "C", asset collate "C", kind, chain collate "C" for update)`.execute(db);
}

/** A blocked queue, with the time of its next check (`due_at`). `waiting` counts its rows up to 10,000. */
export type BlockedQueue = QueueKey & { blocked_by: string; blocked_at: Date; due_at: Date; waiting: number };

/** Returns blocked queues, the longest blocked first. */
export async function listBlockedQueues(db: Db, limit: number): Promise<BlockedQueue[]> {
  const count = (kind: PayoutKind) => sql`(select count(*)::int from (select from ${rowsOf[kind]} limit 10000) found)`;
  const { rows } = await sql<BlockedQueue>`
    select ${key}, q.blocked_by, q.blocked_at, q.due_at,
      case q.kind when 'settlement' then ${count("settlement")} else ${count("refund")} end as waiting
    from payout_queue q where q.blocked_by is not null order by q.blocked_at limit ${limit}`.execute(db);
  return rows;
}

/**
 * Returns the number of queues that each obstacle blocks. No worker takes the queues of a chain that has left the networks file, so
 * no obstacle is stored with them: they wait for their assets.
 * @param args.chains the chains of the networks file
 */
export async function countBlockedQueues(
  db: Db,
  { chains, now }: { chains: readonly string[]; now: Date },
): Promise<{ kind: PayoutKind; obstacle: string; count: number }[]> {
  const { rows } = await sql<{ kind: PayoutKind; obstacle: string; count: number }>`
    select kind, case when chain = any(${chains}) then blocked_by else 'unknown_asset' end as obstacle, count(*)::int as count
    from payout_queue where blocked_by is not null or due_at <= ${now} and chain <> all(${chains}) group by 1, 2`.execute(
    db,
  );
  return rows;
}
