-- Webhooks: endpoints, and the events that are delivered to them.

create table webhook_endpoint (
  id text primary key,
  account_id text not null references account,
  mode text not null check (mode in ('test', 'live')),
  url text not null,
  key_id text not null,
  secret bytea not null,
  previous_key_id text,
  previous_secret bytea,
  previous_until timestamptz,
  owner text,
  lease_until timestamptz,
  due_retries integer not null default 0,
  created_at timestamptz not null,
  deleted_at timestamptz
);
create unique index webhook_endpoint_one on webhook_endpoint (account_id, mode) where deleted_at is null;

create table webhook_delivery (
  id text primary key,
  endpoint_id text not null references webhook_endpoint,
  payment_id text references payment,
  change_id text references destination_change,
  type text not null,
  state_version integer not null,
  at timestamptz not null,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'given_up')),
  attempts_made integer not null default 0,
  last_outcome text,
  delivered_at timestamptz,
  due_at timestamptz,
  unique (payment_id, endpoint_id, type),
  unique (change_id, endpoint_id, type),
  check (num_nonnulls(payment_id, change_id) = 1),
  check ((state = 'pending') = (due_at is not null))
);
create index webhook_delivery_changes_due on webhook_delivery (endpoint_id, due_at) where due_at is not null and change_id is not null;
create index webhook_delivery_due on webhook_delivery (endpoint_id, due_at) where due_at is not null;
create index webhook_delivery_pending on webhook_delivery (at) where state = 'pending';
create index webhook_delivery_listed on webhook_delivery (endpoint_id, at);
create index webhook_delivery_given_up on webhook_delivery (endpoint_id, at) where state = 'given_up';

-- Triggers write the deliveries, so that no move of a payment is missed: they commit with the move itself. The one for
-- inserts runs once for all payments of a statement. The one for updates runs for each row that moves: a plan that joins
-- the old and the new rows of a statement would be kept, and be quadratic for a larger one.
create function add_created_deliveries() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into webhook_delivery (id, endpoint_id, payment_id, type, state_version, at, due_at)
    select 'evt_' || replace(gen_random_uuid()::text, '-', ''), e.id, p.id, 'payment.created', p.state_version,
      p.updated_at, p.updated_at
    from added p join webhook_endpoint e on e.account_id = p.account_id and e.mode = p.mode and e.deleted_at is null;
    return null;
  end $$;
create trigger payment_insert_webhook after insert on payment referencing new table as added
  for each statement execute function add_created_deliveries();

create function add_state_deliveries() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into webhook_delivery (id, endpoint_id, payment_id, type, state_version, at, due_at)
    select 'evt_' || replace(gen_random_uuid()::text, '-', ''), e.id, new.id, 'payment.' || new.state,
      new.state_version, new.updated_at, new.updated_at
    from webhook_endpoint e
    where e.account_id = new.account_id and e.mode = new.mode and e.deleted_at is null;
    return null;
  end $$;
create trigger payment_state_webhook after update of state on payment
  for each row when (old.state is distinct from new.state) execute function add_state_deliveries();

create function add_destination_deliveries() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into webhook_delivery (id, endpoint_id, change_id, type, state_version, at, due_at)
    select 'evt_' || replace(gen_random_uuid()::text, '-', ''), e.id, new.id,
      'destination.' || case new.state when 'requested' then 'change_requested' else new.state end,
      case new.state when 'requested' then 0 when 'approved' then 1 else 2 end, moved.at, moved.at
    from (select coalesce(new.applied_at, new.decided_at, new.created_at) as at) moved, merchant m
    join webhook_endpoint e on e.account_id = m.account_id and e.mode = m.mode and e.deleted_at is null
    where m.id = new.merchant_id;
    return null;
  end $$;
create trigger destination_change_insert_webhook after insert on destination_change
  for each row execute function add_destination_deliveries();
create trigger destination_change_state_webhook after update of state on destination_change
  for each row when (old.state is distinct from new.state) execute function add_destination_deliveries();

-- A payout causes one event for each of its payments. The transaction that confirms the payout writes one row here; a job
-- then writes the events in parts (payments/webhooks/settled-events.ts).
create table webhook_fanout (
  settlement_id text not null references settlement,
  endpoint_id text not null references webhook_endpoint,
  at timestamptz not null,
  after_payment text not null default '',
  primary key (settlement_id, endpoint_id)
);
create index webhook_fanout_endpoint on webhook_fanout (endpoint_id, at, settlement_id);

create function add_webhook_fanout() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into webhook_fanout (settlement_id, endpoint_id, at)
    select new.id, e.id, new.paid_at from merchant m
    join webhook_endpoint e on e.account_id = m.account_id and e.mode = new.mode and e.deleted_at is null
    where m.id = new.merchant_id;
    return null;
  end $$;
create trigger settlement_paid_webhook after update of state on settlement
  for each row when (old.state <> 'paid' and new.state = 'paid') execute function add_webhook_fanout();
