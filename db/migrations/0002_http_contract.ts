import { type Kysely, sql } from "kysely";

/** What the whole HTTP contract needs: idempotency, logos, collected data, refunds, webhooks. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // Which version of the contract an account was built against
  "alter table account add column api_version text not null default '2026-02-18'",

  // What an operator's command was about
  "alter table operator_action add column subject text",

  // Answers kept, so that a request that is repeated is done once
  `create table idempotency (
    account_id text not null references account,
    mode text not null check (mode in ('test', 'live')),
    operation text not null,
    key text not null,
    digest bytea not null,
    status integer,
    answer text,
    created_at timestamptz not null,
    primary key (account_id, mode, operation, key)
  )`,
  "create index idempotency_created on idempotency (created_at)",

  // Copies of merchants' logos, named by their content
  `create table logo (
    id text primary key,
    content_type text not null,
    bytes bytea not null,
    width integer not null,
    height integer not null,
    created_at timestamptz not null
  )`,
  "alter table merchant drop column icon_url, add column logo_id text references logo",
  "create index merchant_listed on merchant (account_id, mode, created_at desc, id desc) where deleted_at is null",
  "drop index merchant_account",

  // What became of a payment, and how it was paid
  `alter table payment
    add column option_id text references payment_option,
    add column updated_at timestamptz,
    add column cancelled_reason text check (cancelled_reason is null or state = 'cancelled')`,
  "update payment set updated_at = coalesce((select max(at) from event where subject = payment.id), created_at)",
  "alter table payment alter column updated_at set not null",
  `update payment set option_id = (
    select option_id from attempt where payment_id = payment.id and attempt.state = 'verified')`,
  "create index payment_account on payment (account_id, mode, created_at desc, id desc)",
  "drop index payment_merchant",
  "create index payment_merchant on payment (merchant_id, created_at desc, id desc)",
  `create table refund (
    id text primary key,
    payment_id text not null unique references payment,
    created_at timestamptz not null
  )`,

  // Whose buyers must say who they are, and what they said: encrypted, for a while
  `create table collection_policy (
    id text primary key,
    merchant_id text not null references merchant,
    asset text,
    unit text,
    minimum numeric(78,0),
    created_at timestamptz not null,
    check ((unit is null) = (minimum is null))
  )`,
  "create index collection_policy_merchant on collection_policy (merchant_id)",
  `create table collected_data (
    id text primary key,
    payment_id text not null references payment,
    account text not null,
    key_id text not null,
    sealed bytea not null,
    created_at timestamptz not null,
    delete_at timestamptz not null,
    unique (payment_id, account)
  )`,
  "create index collected_data_delete on collected_data (delete_at)",
  "alter table payment_option add column needs_data boolean not null default false",

  // Who is told of what happens to payments
  `create table webhook_endpoint (
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
    busy_until timestamptz,
    due_try integer not null default 0,
    created_at timestamptz not null,
    deleted_at timestamptz
  )`,
  "create unique index webhook_endpoint_one on webhook_endpoint (account_id, mode) where deleted_at is null",
  `create table webhook_delivery (
    id text primary key,
    endpoint_id text not null references webhook_endpoint,
    payment_id text not null references payment,
    type text not null,
    state_version integer not null,
    at timestamptz not null,
    state text not null default 'pending' check (state in ('pending', 'delivered', 'given_up')),
    tries integer not null default 0,
    last_outcome text,
    delivered_at timestamptz,
    due_at timestamptz,
    unique (payment_id, endpoint_id, type),
    check ((state = 'pending') = (due_at is not null))
  )`,
  "create index webhook_delivery_due on webhook_delivery (endpoint_id, due_at) where due_at is not null",
  "create index webhook_delivery_pending on webhook_delivery (at) where state = 'pending'",
  "create index webhook_delivery_listed on webhook_delivery (endpoint_id, at)",
  "create index webhook_delivery_given_up on webhook_delivery (endpoint_id, at) where state = 'given_up'",
  // A trigger, because no move of a payment may be forgotten: the rows commit with the move itself.
  `create function owe_webhook() returns trigger language plpgsql as $$
  begin
    insert into webhook_delivery (id, endpoint_id, payment_id, type, state_version, at, due_at)
    select 'evt_' || replace(gen_random_uuid()::text, '-', ''), e.id, new.id,
      'payment.' || case new.state when 'requires_action' then 'created' else new.state end,
      new.state_version, new.updated_at, new.updated_at
    from webhook_endpoint e
    where e.account_id = new.account_id and e.mode = new.mode and e.deleted_at is null;
    return null;
  end $$`,
  `create trigger payment_born_webhook after insert on payment
    for each row execute function owe_webhook()`,
  `create trigger payment_moved_webhook after update of state on payment
    for each row when (old.state is distinct from new.state) execute function owe_webhook()`,
  // Being paid out is no state of a payment, and yet a step that must not look stale beside its success: one version on.
  `create function owe_settled_webhook() returns trigger language plpgsql as $$
  begin
    insert into webhook_delivery (id, endpoint_id, payment_id, type, state_version, at, due_at)
    select 'evt_' || replace(gen_random_uuid()::text, '-', ''), e.id, p.id, 'payment.settled',
      p.state_version + 1, new.paid_at, new.paid_at
    from payment p
    join webhook_endpoint e on e.account_id = p.account_id and e.mode = p.mode and e.deleted_at is null
    where p.settlement_id = new.id;
    return null;
  end $$`,
  `create trigger settlement_paid_webhook after update of state on settlement
    for each row when (old.state <> 'paid' and new.state = 'paid') execute function owe_settled_webhook()`,
];
