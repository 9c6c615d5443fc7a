-- Webhooks: endpoints, events, and the deliveries of events to endpoints.

create table webhook_endpoint (
  id text primary key,
  account_id text not null references account,
  mode text not null check (mode in ('test', 'live')),
  url text not null,
  -- The scheme, host and port of the URL, for the console: user names, paths and queries often hold a secret.
  origin text generated always as (
    substring(url from '(?i)^https?://') || substring(url from '(?i)^https?://(?:[^/?#\\]*@)?([^/?#\\@]+)')
  ) stored,
  -- What the endpoint receives; null: events of every type, of every merchant.
  event_types text[] check (cardinality(event_types) > 0),
  merchant_ids text[] check (cardinality(merchant_ids) > 0),
  payload text not null default 'full' check (payload in ('full', 'thin')),
  -- An operator has registered it: API keys cannot change it.
  by_operator boolean not null,
  key_id text not null,
  secret bytea not null,
  previous_key_id text,
  previous_secret bytea,
  previous_until timestamptz,
  -- The first failure since the last success, or since a time without requests (payments/webhooks/disable-failing.ts).
  failing_since timestamptz,
  -- The last failure, to the minute.
  failed_at timestamptz,
  -- Until when a queue of its own serves it: one of its requests took seconds (payments/webhooks/deliver-events.ts).
  slow_until timestamptz,
  disabled_at timestamptz,
  disabled_reason text check (disabled_reason in ('failing', 'requested')),
  owner text,
  lease_until timestamptz,
  due_retries integer not null default 0,
  created_at timestamptz not null,
  deleted_at timestamptz,
  check ((disabled_at is null) = (disabled_reason is null))
);
create unique index webhook_endpoint_url on webhook_endpoint (account_id, mode, md5(url)) where deleted_at is null;
create index webhook_endpoint_created on webhook_endpoint (account_id, mode, created_at);
-- An endpoint of an operator is registered so that no API key silences it. The api's login cannot either.
create function reject_endpoint_change() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  begin
    raise insufficient_privilege using message = format('%s belongs to an operator', old.id);
  end $$;
create trigger webhook_endpoint_of_operator before update on webhook_endpoint for each row
  when (old.by_operator and pg_has_role('pay_api', 'usage') and not pg_has_role('pay_admin', 'usage'))
  execute function reject_endpoint_change();
create index webhook_endpoint_deleted on webhook_endpoint (deleted_at);

-- The filters by which an endpoint received events until it was disabled or got others. Notices of changes go by these for one more
-- day: a thief of the api's login could otherwise disable or narrow a merchant's endpoint for the moment of a forged change. Only
-- the trigger writes it.
create table webhook_former_filter (
  id bigint generated always as identity primary key,
  endpoint_id text not null references webhook_endpoint,
  event_types text[],
  merchant_ids text[],
  until timestamptz not null
);
create index webhook_former_filter_until on webhook_former_filter (endpoint_id, until);
create function keep_former_filter() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into webhook_former_filter (endpoint_id, event_types, merchant_ids, until)
    values (old.id, old.event_types, old.merchant_ids, clock_timestamp());
    return null;
  end $$;
create trigger webhook_endpoint_former_filter after update on webhook_endpoint for each row
  when (old.disabled_at is null
    and (old.event_types, old.merchant_ids, old.disabled_at) is distinct from (new.event_types, new.merchant_ids, new.disabled_at))
  execute function keep_former_filter();

-- What happened to an account's objects, once for all of its endpoints. Triggers copy the account and the merchant from
-- rows that refer to them.
create table webhook_event (
  -- The time and random bits, as payments/ids.ts makes ids.
  id text primary key default
    'evt_' || lpad(to_hex(floor(extract(epoch from now()))::bigint), 8, '0') || right(replace(gen_random_uuid()::text, '-', ''), 24),
  sequence bigint generated always as identity,
  account_id text not null,
  mode text not null check (mode in ('test', 'live')),
  merchant_id text,
  type text not null,
  -- 0: notices of changes of destinations and approval keys, and test events; 1: payments, refunds, and changes of endpoints, of
  -- which a thief of a key could cause many to delay a notice; 2: payouts, of which one payout causes thousands.
  priority smallint not null generated always as (
    case when type = 'payment.settled' then 2 when type = 'webhook_endpoint.test' then 0
      when type like 'payment.%' or type like 'refund.%' or type like 'webhook\_endpoint.%' then 1 else 0 end
  ) stored,
  -- What the event is about.
  payment_id text references payment,
  change_id text references destination_change,
  refund_id text references refund,
  approval_key text,
  endpoint_id text references webhook_endpoint,
  -- What the payload says of an endpoint.
  detail jsonb,
  state_version integer not null default 0,
  at timestamptz not null,
  -- The place in the account's list of events, given once the event is committed (db/queries/webhook-events.ts).
  position bigint,
  foreign key (merchant_id, approval_key) references approval_key (merchant_id, public_key),
  check (num_nonnulls(payment_id, change_id, refund_id, approval_key, endpoint_id) = 1),
  check (approval_key is null or merchant_id is not null),
  check ((endpoint_id is null) = (detail is null)),
  -- A payload says of an endpoint what `detail` says, and of anything else what its rows say.
  check ((endpoint_id is not null) = (type like 'webhook\_endpoint.%'))
);
create unique index webhook_event_payment on webhook_event (payment_id, type) where payment_id is not null;
create unique index webhook_event_change on webhook_event (change_id, type) where change_id is not null;
create unique index webhook_event_refund on webhook_event (refund_id, type) where refund_id is not null;
create unique index webhook_event_approval_key on webhook_event (merchant_id, approval_key, type) where approval_key is not null;
create index webhook_event_at on webhook_event (account_id, mode, at, id);
create index webhook_event_endpoint on webhook_event (account_id, mode, at) where endpoint_id is not null;
create index webhook_event_unnumbered on webhook_event (account_id, mode, sequence) where position is null;
create unique index webhook_event_position on webhook_event (account_id, mode, position) where position is not null;

-- The highest position that an account's events have. Its lock orders the calls that number events.
create table webhook_event_list (
  account_id text not null references account,
  mode text not null check (mode in ('test', 'live')),
  last_position bigint not null,
  primary key (account_id, mode)
);

create table webhook_delivery (
  event_id text not null references webhook_event,
  endpoint_id text not null references webhook_endpoint,
  -- That of the event.
  priority smallint not null check (priority between 0 and 2),
  at timestamptz not null,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'given_up')),
  attempts_made integer not null default 0,
  last_outcome text,
  delivered_at timestamptz,
  due_at timestamptz,
  primary key (event_id, endpoint_id),
  check ((state = 'pending') = (due_at is not null))
);
-- Only workers end or postpone a delivery. Other logins make it due once more.
create function reject_delivery_change() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  begin
    raise insufficient_privilege using message = 'only a worker ends or postpones a delivery';
  end $$;
create trigger webhook_delivery_of_workers before update on webhook_delivery for each row
  when ((new.state <> 'pending' or new.due_at > clock_timestamp() + interval '1 minute')
    and (pg_has_role('pay_api', 'usage') or pg_has_role('pay_admin', 'usage')) and not pg_has_role('pay_worker', 'usage'))
  execute function reject_delivery_change();
create index webhook_delivery_due on webhook_delivery (endpoint_id, priority, due_at) where due_at is not null;
create index webhook_delivery_pending on webhook_delivery (at) where state = 'pending';
create index webhook_delivery_listed on webhook_delivery (endpoint_id, at, event_id);
create index webhook_delivery_unaccepted on webhook_delivery (endpoint_id, state, at, event_id) where state <> 'delivered';

-- Requests that were sent, with the beginning of the response; deleted after 30 days.
create table webhook_attempt (
  event_id text not null,
  endpoint_id text not null,
  id bigint generated always as identity,
  at timestamptz not null,
  duration_ms integer not null,
  outcome text not null,
  response_type text,
  response_body text,
  primary key (event_id, endpoint_id, id),
  foreign key (event_id, endpoint_id) references webhook_delivery
);
create index webhook_attempt_at on webhook_attempt (at);

-- Adds the deliveries of new events: one for each endpoint that receives them, and of a notice of a change also for each that would
-- have received it within the last day. An event about an endpoint goes to the others, a test event only to its endpoint. Each is due
-- now: a stolen login can write any time of an event.
create function add_webhook_deliveries() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    -- Most updates of payments add no event. They must not wait for a lock on this table, as `vacuum full` takes it.
    if not exists (select from added) then return null; end if;
    insert into webhook_delivery (event_id, endpoint_id, priority, at, due_at)
    select a.id, e.id, a.priority, a.at, least(a.at, now())
    from added a
    join webhook_endpoint e on e.account_id = a.account_id and e.mode = a.mode and e.deleted_at is null
    where case when a.type = 'webhook_endpoint.test' then e.id = a.endpoint_id and e.disabled_at is null
      else e.id is distinct from a.endpoint_id and exists (
        select from (
          select e.event_types, e.merchant_ids where e.disabled_at is null
          union all
          select event_types, merchant_ids from webhook_former_filter
          where a.priority = 0 and endpoint_id = e.id and until > now() - interval '1 day'
        ) filter
        where (filter.event_types is null or a.type = any(filter.event_types))
          and (filter.merchant_ids is null or a.merchant_id = any(filter.merchant_ids))) end;
    return null;
  end $$;
create trigger webhook_event_deliveries after insert on webhook_event referencing new table as added
  for each statement execute function add_webhook_deliveries();

-- Triggers write the events, so that no move of a payment is missed: they commit with the move itself. They run once for
-- all payments of a statement.
create function add_created_events() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into webhook_event (account_id, mode, merchant_id, type, payment_id, state_version, at)
    select p.account_id, p.mode, p.merchant_id, 'payment.created', p.id, p.state_version, p.updated_at from added p;
    return null;
  end $$;
create trigger payment_insert_webhook after insert on payment referencing new table as added
  for each statement execute function add_created_events();

-- The old rows are looked up in a hash. A join's plan would be kept, and could be quadratic for a larger statement. Without the
-- setting, so would be the look-up when the first statement of a session updates more than about 100,000 payments.
create function add_state_events() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp set hash_mem_multiplier = 1000 as $$
  begin
    insert into webhook_event (account_id, mode, merchant_id, type, payment_id, state_version, at)
    select p.account_id, p.mode, p.merchant_id, 'payment.' || p.state, p.id, p.state_version, p.updated_at
    from moved p where (p.id, p.state) not in (select id, state from former);
    return null;
  end $$;
create trigger payment_state_webhook after update on payment referencing old table as former new table as moved
  for each statement execute function add_state_events();

create function add_destination_events() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into webhook_event (account_id, mode, merchant_id, type, change_id, state_version, at)
    select m.account_id, m.mode, m.id,
      'destination.' || case new.state when 'requested' then 'change_requested' else new.state end, new.id,
      case new.state when 'requested' then 0 when 'approved' then 1 else 2 end,
      coalesce(new.applied_at, new.decided_at, new.created_at)
    from merchant m where m.id = new.merchant_id;
    return null;
  end $$;
create trigger destination_change_insert_webhook after insert on destination_change
  for each row execute function add_destination_events();
create trigger destination_change_state_webhook after update of state on destination_change
  for each row when (old.state is distinct from new.state) execute function add_destination_events();

-- A merchant learns of every key that may approve changes of its destinations, also of one that a thief has registered.
create function add_approval_key_events() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into webhook_event (account_id, mode, merchant_id, type, approval_key, state_version, at)
    select m.account_id, m.mode, m.id,
      case when new.revoked_at is null then 'approval_key.registered' else 'approval_key.revoked' end, new.public_key,
      case when new.revoked_at is null then 0 else 1 end, coalesce(new.revoked_at, new.created_at)
    from merchant m where m.id = new.merchant_id;
    return null;
  end $$;
create trigger approval_key_insert_webhook after insert on approval_key
  for each row execute function add_approval_key_events();
create trigger approval_key_revoked_webhook after update of revoked_at on approval_key
  for each row when (old.revoked_at is null and new.revoked_at is not null) execute function add_approval_key_events();

-- A payout causes one event for each of its payments. The transaction that confirms the payout writes one row here; the
-- sweep then writes the events in parts (payments/webhooks/settled-events.ts).
create table webhook_fanout (
  settlement_id text primary key references settlement,
  at timestamptz not null,
  after_payment text not null default ''
);
create index webhook_fanout_at on webhook_fanout (at, settlement_id);

create function add_webhook_fanout() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into webhook_fanout (settlement_id, at) values (new.id, new.paid_at);
    return null;
  end $$;
create trigger settlement_paid_webhook after update of state on settlement
  for each row when (old.state <> 'paid' and new.state = 'paid') execute function add_webhook_fanout();
