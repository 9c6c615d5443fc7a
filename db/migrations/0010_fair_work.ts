import { type Kysely, sql } from "kysely";

/** Bounded work: webhook events of payouts in parts, and payouts that wait without jobs. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // A payout that has arrived owes its endpoint an event for each of its payments. The transaction that confirms it
  // writes one row here; the events follow in parts (payments/settled-events.ts).
  `create table webhook_fanout (
    settlement_id text not null references settlement,
    endpoint_id text not null references webhook_endpoint,
    at timestamptz not null,
    after_payment text not null default '',
    primary key (settlement_id, endpoint_id)
  )`,
  "create index webhook_fanout_endpoint on webhook_fanout (endpoint_id, at, settlement_id)",
  "drop trigger settlement_paid_webhook on settlement",
  "drop function owe_settled_webhook",
  `create function add_webhook_fanout() returns trigger language plpgsql as $$
  begin
    insert into webhook_fanout (settlement_id, endpoint_id, at)
    select new.id, e.id, new.paid_at from merchant m
    join webhook_endpoint e on e.account_id = m.account_id and e.mode = new.mode and e.deleted_at is null
    where m.id = new.merchant_id;
    return null;
  end $$`,
  `create trigger settlement_paid_webhook after update of state on settlement
    for each row when (old.state <> 'paid' and new.state = 'paid') execute function add_webhook_fanout()`,
  "drop index payment_settlement",
  "create index payment_settlement on payment (settlement_id, id) where settlement_id is not null",

  // One row for each merchant and asset that payouts wait for: the sweep takes rows of this table, and never the
  // settlements or refunds themselves. What keeps a payout waiting is a fact of merchant and asset, so a merchant with
  // 100,000 waiting settlements is one row. A refund that belongs to no merchant has the merchant ''. The asset is the
  // balance's, the chain is where the money moves.
  `create table payout_queue (
    kind text not null check (kind in ('settlement', 'refund')),
    merchant_id text not null,
    asset text not null,
    chain text not null,
    due_at timestamptz,
    due_try integer not null default 0,
    blocked_by text,
    blocked_at timestamptz,
    version bigint not null default 0,
    check ((blocked_by is null) = (blocked_at is null)),
    check (blocked_by is null or due_at is not null),
    primary key (kind, merchant_id, asset, chain)
  )`,
  "create index payout_queue_due on payout_queue (kind, chain, due_at) where due_at is not null",
  "create index payout_queue_blocked on payout_queue (blocked_at) where blocked_by is not null",

  // A row that falls due makes its queue due. A blocked queue stays blocked, except where a new row may succeed though
  // others were too large. The version says that something has changed since a worker looked: what it then found is
  // not stored (db/payout-queue.ts).
  `create function queue_payout(of_kind text, of_merchant text, of_asset text, of_chain text, at timestamptz)
  returns void language sql as $$
    insert into payout_queue as q (kind, merchant_id, asset, chain, due_at)
    values (of_kind, of_merchant, of_asset, of_chain, at)
    on conflict (kind, merchant_id, asset, chain) do update set version = q.version + 1,
      due_at = case when q.blocked_by is null or q.blocked_by in ('balance_short', 'stock_short')
        then least(q.due_at, excluded.due_at) else q.due_at end
  $$`,
  // An obstacle may have gone. The queue is due since it was blocked.
  `create function wake_payouts(of_kind text, of_merchant text, of_asset text) returns void language sql as $$
    update payout_queue set version = version + 1, due_try = 0, due_at = least(due_at, blocked_at),
      blocked_by = null, blocked_at = null
    where (kind, merchant_id, asset, chain) in (
      select kind, merchant_id, asset, chain from payout_queue
      where kind = of_kind and merchant_id = of_merchant and (of_asset is null or asset = of_asset)
      order by asset collate "C", chain collate "C" for update)
  $$`,

  `create function queue_new_settlements() returns trigger language plpgsql as $$
  begin
    perform queue_payout('settlement', s.merchant_id, s.asset, split_part(s.asset, '/', 1), s.due_at)
    from (
      select merchant_id, asset, min(due_at) as due_at from added where due_at is not null group by merchant_id, asset
      order by merchant_id collate "C", asset collate "C"
    ) s;
    return null;
  end $$`,
  `create trigger settlement_queued after insert on settlement referencing new table as added
    for each statement execute function queue_new_settlements()`,
  `create function queue_settlement() returns trigger language plpgsql as $$
  begin
    perform queue_payout('settlement', new.merchant_id, new.asset, split_part(new.asset, '/', 1), new.due_at);
    return null;
  end $$`,
  `create trigger settlement_due_again after update of due_at on settlement for each row
    when (new.due_at is not null and new.due_at is distinct from old.due_at) execute function queue_settlement()`,
  `create function queue_refund() returns trigger language plpgsql as $$
  begin
    perform queue_payout('refund', coalesce(new.merchant_id, ''), coalesce(new.owed_asset, new.asset),
      split_part(new.asset, '/', 1), new.due_at);
    return null;
  end $$`,
  `create trigger refund_queued after insert on refund for each row
    when (new.due_at is not null) execute function queue_refund()`,
  `create trigger refund_due_again after update of due_at on refund for each row
    when (new.due_at is not null and new.due_at is distinct from old.due_at) execute function queue_refund()`,

  // What takes an obstacle away: a destination that is registered or changed,
  `create function wake_destinations() returns trigger language plpgsql as $$
  begin
    perform wake_payouts('settlement', d.merchant_id, d.asset)
    from (select merchant_id, asset from changed order by merchant_id collate "C", asset collate "C") d;
    return null;
  end $$`,
  `create trigger settlement_destination_added after insert on settlement_destination
    referencing new table as changed for each statement execute function wake_destinations()`,
  `create trigger settlement_destination_changed after update on settlement_destination
    referencing new table as changed for each statement execute function wake_destinations()`,
  // a merchant whose payouts an operator releases,
  `create function wake_merchant() returns trigger language plpgsql as $$
  begin
    perform wake_payouts('settlement', new.id, null);
    return null;
  end $$`,
  `create trigger merchant_wakes after update of payouts_held_at on merchant for each row
    when (old.payouts_held_at is distinct from new.payouts_held_at) execute function wake_merchant()`,
  // a refund that waits no more,
  `create function wake_behind_refund() returns trigger language plpgsql as $$
  begin
    perform wake_payouts('settlement', new.merchant_id, coalesce(new.owed_asset, new.asset));
    return null;
  end $$`,
  // (At the commit: everyone else locks balances before queues.)
  `create constraint trigger refund_wakes after update of state on refund deferrable initially deferred for each row
    when (old.state = 'due' and new.state <> 'due' and new.merchant_id is not null) execute function wake_behind_refund()`,
  // a balance that grows,
  `create function wake_balance() returns trigger language plpgsql as $$
  begin
    perform wake_payouts('refund', new.merchant_id, new.asset);
    return null;
  end $$`,
  `create trigger merchant_balance_wakes after update of amount on merchant_balance for each row
    when (new.amount > old.amount) execute function wake_balance()`,
  // and an accumulating settlement that comes to its minimum.
  `create function wake_minimum() returns trigger language plpgsql as $$
  begin
    if exists (select from settlement_destination d
      where d.merchant_id = new.merchant_id and d.asset = new.asset and d.minimum <= new.amount) then
      perform wake_payouts('settlement', new.merchant_id, new.asset);
    end if;
    return null;
  end $$`,
  `create trigger settlement_minimum_wakes after update of amount on settlement for each row
    when (new.state = 'gathering' and new.amount > old.amount) execute function wake_minimum()`,

  `insert into payout_queue (kind, merchant_id, asset, chain, due_at)
    select 'settlement', merchant_id, asset, split_part(asset, '/', 1), min(due_at) from settlement
    where due_at is not null group by merchant_id, asset`,
  `insert into payout_queue (kind, merchant_id, asset, chain, due_at)
    select 'refund', coalesce(merchant_id, ''), coalesce(owed_asset, asset), split_part(asset, '/', 1), min(due_at)
    from refund where due_at is not null group by 2, 3, 4`,
  "drop index settlement_due",
  `create index settlement_queue on settlement (merchant_id, asset, due_try, due_at) where due_at is not null`,
  `create index settlement_waiting on settlement (merchant_id, asset, coalesce(closed_at, created_at)) where state = 'due'`,
  "drop index settlement_unbegun",
  `create index settlement_unbegun on settlement (merchant_id, asset, number) where state in ('due', 'gathering')`,
  "drop index refund_due",
  `create index refund_queue on refund
    (coalesce(merchant_id, ''), coalesce(owed_asset, asset), split_part(asset, '/', 1), due_try, due_at)
    where due_at is not null`,

  // Fair shares of what is due: by merchant, and by chain.
  "create index payment_due_merchant on payment (merchant_id, due_at) where due_at is not null",
  "alter table attempt add column chain text, add column merchant_id text",
  `update attempt a set chain = o.chain, merchant_id = p.merchant_id
    from payment_option o, payment p where o.id = a.option_id and p.id = a.payment_id`,
  "alter table attempt alter column chain set not null, alter column merchant_id set not null",
  `create function place_attempt() returns trigger language plpgsql as $$
  begin
    select o.chain, p.merchant_id into new.chain, new.merchant_id
    from payment_option o, payment p where o.id = new.option_id and p.id = new.payment_id;
    return new;
  end $$`,
  "create trigger attempt_place before insert on attempt for each row execute function place_attempt()",
  "create index attempt_due_place on attempt (chain, merchant_id, due_at) where due_at is not null",
  "drop index transfer_due",
  "create index transfer_due on transfer (chain, due_at) where due_at is not null",
];
