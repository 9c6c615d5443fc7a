-- The payout queue: one row for each merchant and asset that has payouts to make.
--
-- The sweep reads this table, and never the settlements or refunds themselves. An obstacle to a payout applies to a
-- merchant and asset, so a merchant with 100,000 waiting settlements is one row here. `asset` is the asset of the balance;
-- `chain` is the chain on which the money moves. A refund that belongs to no merchant has the merchant ''.

create table payout_queue (
  kind text not null check (kind in ('settlement', 'refund')),
  merchant_id text not null,
  asset text not null,
  chain text not null,
  due_at timestamptz,
  due_retries integer not null default 0,
  blocked_by text,
  blocked_at timestamptz,
  version bigint not null default 0,
  primary key (kind, merchant_id, asset, chain),
  check ((blocked_by is null) = (blocked_at is null)),
  check (blocked_by is null or due_at is not null)
);
create index payout_queue_due on payout_queue (kind, chain, due_at) where due_at is not null;
create index payout_queue_blocked on payout_queue (blocked_at) where blocked_by is not null;

-- Makes a queue due when one of its rows becomes due. A blocked queue stays blocked, unless the obstacle is an amount: a
-- smaller new row may then succeed. Every call increments `version`, so that a worker does not store an obstacle that it
-- found before the change (db/queries/payout-queue.ts).
create function queue_payout(of_kind text, of_merchant text, of_asset text, of_chain text, at timestamptz)
  returns void language sql set search_path = pg_catalog, public, pg_temp as $$
    insert into payout_queue as q (kind, merchant_id, asset, chain, due_at)
    values (of_kind, of_merchant, of_asset, of_chain, at)
    on conflict (kind, merchant_id, asset, chain) do update set version = q.version + 1,
      due_at = case when q.blocked_by is null or q.blocked_by in ('balance_short', 'inventory_short', 'funds_short', 'limit_payout')
        then least(q.due_at, excluded.due_at) else q.due_at end
  $$;

-- Unblocks queues whose obstacle may be gone, and makes them due as of the time when they were blocked.
create function wake_payouts(of_kind text, of_merchant text, of_asset text) returns void language sql
  security definer set search_path = pg_catalog, public, pg_temp as $$
    update payout_queue set version = version + 1, due_retries = 0, due_at = least(due_at, blocked_at),
      blocked_by = null, blocked_at = null
    where (kind, merchant_id, asset, chain) in (
      select kind, merchant_id, asset, chain from payout_queue
      where kind = of_kind and merchant_id = of_merchant and (of_asset is null or asset = of_asset)
      order by asset collate "C", chain collate "C" for update)
  $$;

-- New and rescheduled rows make their queue due.

create function queue_new_settlements() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    perform queue_payout('settlement', s.merchant_id, s.asset, split_part(s.asset, '/', 1), s.due_at)
    from (
      select merchant_id, asset, min(due_at) as due_at from added where due_at is not null group by merchant_id, asset
      order by merchant_id collate "C", asset collate "C"
    ) s;
    return null;
  end $$;
create trigger settlement_queued after insert on settlement referencing new table as added
  for each statement execute function queue_new_settlements();

create function queue_settlement() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    perform queue_payout('settlement', new.merchant_id, new.asset, split_part(new.asset, '/', 1), new.due_at);
    return null;
  end $$;
create trigger settlement_requeued after update of due_at on settlement for each row
  when (new.due_at is not null and new.due_at is distinct from old.due_at) execute function queue_settlement();

create function queue_refund() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    perform queue_payout('refund', coalesce(new.merchant_id, ''), coalesce(new.owed_asset, new.asset),
      split_part(new.asset, '/', 1), new.due_at);
    return null;
  end $$;
create trigger refund_queued after insert on refund for each row
  when (new.due_at is not null) execute function queue_refund();
create trigger refund_requeued after update of due_at on refund for each row
  when (new.due_at is not null and new.due_at is distinct from old.due_at) execute function queue_refund();

-- Events that may remove an obstacle wake the queue.

-- 1. A destination is registered or changed.
create function wake_settlements_of_destinations() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    perform wake_payouts('settlement', d.merchant_id, d.asset)
    from (select merchant_id, asset from changed order by merchant_id collate "C", asset collate "C") d;
    return null;
  end $$;
create trigger settlement_destination_added after insert on settlement_destination
  referencing new table as changed for each statement execute function wake_settlements_of_destinations();
create trigger settlement_destination_changed after update on settlement_destination
  referencing new table as changed for each statement execute function wake_settlements_of_destinations();

-- 2. An operator releases a merchant's payouts, or a merchant is deleted: a deleted merchant is paid out below its minimum.
create function wake_settlements_of_merchant() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    perform wake_payouts('settlement', new.id, null);
    return null;
  end $$;
create trigger merchant_hold_wakes after update of payouts_held_at on merchant for each row
  when (old.payouts_held_at is distinct from new.payouts_held_at) execute function wake_settlements_of_merchant();
create trigger merchant_deleted_wakes after update of deleted_at on merchant for each row
  when (old.deleted_at is distinct from new.deleted_at) execute function wake_settlements_of_merchant();

-- 3. A refund no longer waits for the balance. Deferred to the commit, because every other writer locks balances before
-- queues.
create function wake_settlements_behind_refund() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    perform wake_payouts('settlement', new.merchant_id, coalesce(new.owed_asset, new.asset));
    return null;
  end $$;
create constraint trigger refund_wakes_settlements after update of state on refund deferrable initially deferred for each row
  when (old.state = 'due' and new.state <> 'due' and new.merchant_id is not null) execute function wake_settlements_behind_refund();

-- 4. A balance grows.
create function wake_refunds_of_balance() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    perform wake_payouts('refund', new.merchant_id, new.asset);
    return null;
  end $$;
create trigger merchant_balance_wakes after update of amount on merchant_balance for each row
  when (new.amount > old.amount) execute function wake_refunds_of_balance();

-- 5. An accumulating settlement reaches the minimum of its destination.
create function wake_settlements_at_minimum() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    if exists (select from settlement_destination d
      where d.merchant_id = new.merchant_id and d.asset = new.asset and d.minimum <= new.amount) then
      perform wake_payouts('settlement', new.merchant_id, new.asset);
    end if;
    return null;
  end $$;
create trigger settlement_minimum_wakes after update of amount on settlement for each row
  when (new.state = 'accumulating' and new.amount > old.amount) execute function wake_settlements_at_minimum();
create trigger settlement_begins_at_minimum after insert on settlement for each row
  when (new.state = 'accumulating') execute function wake_settlements_at_minimum();
