import { type Kysely, sql } from "kysely";

/** The whole house for one payment: accounts, payments, transfers, lanes, ledger. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // Who may call us
  `create table account (
    id text primary key,
    name text not null,
    created_at timestamptz not null
  )`,
  `create table api_key (
    id text primary key,
    account_id text not null references account,
    mode text not null check (mode in ('test', 'live')),
    hash bytea not null unique,
    hint text not null,
    scopes text[] not null,
    created_at timestamptz not null,
    revoked_at timestamptz
  )`,
  `create table app_id (
    id text primary key,
    account_id text not null references account,
    mode text not null check (mode in ('test', 'live')),
    created_at timestamptz not null,
    revoked_at timestamptz
  )`,
  `create table merchant (
    id text primary key,
    account_id text not null references account,
    mode text not null check (mode in ('test', 'live')),
    name text not null,
    email text not null,
    status text not null default 'active' check (status in ('active', 'inactive', 'suspended')),
    icon_url text,
    created_at timestamptz not null,
    deleted_at timestamptz
  )`,
  "create index merchant_account on merchant (account_id, mode, created_at)",
  `create table settlement_destination (
    id text primary key,
    merchant_id text not null references merchant,
    asset text not null,
    destination text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    unique (merchant_id, asset)
  )`,

  // What may happen, and what did
  `create table transition (
    machine text not null,
    from_state text not null,
    to_state text not null,
    primary key (machine, from_state, to_state)
  )`,
  `create table event (
    id bigint generated always as identity primary key,
    machine text not null,
    subject text not null,
    from_state text not null,
    to_state text not null,
    detail jsonb,
    at timestamptz not null,
    foreign key (machine, from_state, to_state) references transition
  )`,
  "create index event_subject on event (subject, id)",

  // What a merchant asked for, and how it may be paid
  `create table settlement (
    id text primary key,
    merchant_id text not null references merchant,
    mode text not null check (mode in ('test', 'live')),
    asset text not null,
    number integer not null,
    amount numeric(78,0) not null check (amount > 0),
    destination text,
    state text not null,
    created_at timestamptz not null,
    paid_at timestamptz,
    due_at timestamptz,
    due_try integer not null default 0,
    unique (merchant_id, asset, number)
  )`,
  "create index settlement_due on settlement (due_at) where due_at is not null",
  `create table payment (
    id text primary key,
    account_id text not null references account,
    merchant_id text not null references merchant,
    mode text not null check (mode in ('test', 'live')),
    reference_id text,
    unit text not null,
    value numeric(78,0) not null check (value > 0),
    state text not null,
    state_version integer not null default 0,
    failure_code text check (failure_code is null or state = 'failed'),
    checkout jsonb,
    tx_id text,
    paid_asset text,
    paid_amount numeric(78,0),
    settlement_id text references settlement,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    due_at timestamptz,
    due_try integer not null default 0,
    check (state <> 'succeeded' or (tx_id is not null and paid_asset is not null and paid_amount is not null))
  )`,
  "create index payment_merchant on payment (merchant_id, created_at desc, id)",
  "create index payment_due on payment (due_at) where due_at is not null",
  "create index payment_settlement on payment (settlement_id) where settlement_id is not null",
  `create table payment_option (
    id text primary key,
    payment_id text not null references payment,
    account text not null,
    chain text not null,
    asset text not null,
    token text not null,
    payer text not null,
    receiver text not null,
    amount numeric(78,0) not null check (amount > 0),
    authorization_nonce text not null,
    valid_before bigint not null,
    expires_at timestamptz,
    created_at timestamptz not null,
    unique (payment_id, payer, asset)
  )`,
  `create table attempt (
    id text primary key,
    payment_id text not null references payment,
    option_id text not null references payment_option,
    digest bytea not null,
    results jsonb not null,
    state text not null,
    refusal text,
    created_at timestamptz not null,
    due_at timestamptz,
    due_try integer not null default 0,
    unique (payment_id, digest)
  )`,
  "create unique index attempt_one_verified on attempt (payment_id) where state = 'verified'",
  "create index attempt_due on attempt (due_at) where due_at is not null",

  // Lanes and what they send
  `create table lane (
    id text primary key,
    chain text not null,
    address text not null,
    next_nonce bigint not null,
    fence bigint not null default 0,
    owner text,
    lease_until timestamptz,
    rung boolean not null default false,
    unique (chain, address)
  )`,
  `create table transaction (
    lane_id text not null references lane,
    nonce bigint not null,
    replacement integer not null default 0,
    chain text not null,
    hash text not null,
    bytes bytea not null,
    gas_limit numeric(78,0) not null,
    max_fee_per_gas numeric(78,0) not null,
    max_priority_fee_per_gas numeric(78,0) not null,
    state text not null,
    created_at timestamptz not null,
    offered_at timestamptz,
    block_number bigint,
    block_hash text,
    gas_used numeric(78,0),
    gas_price numeric(78,0),
    reverted boolean,
    primary key (lane_id, nonce, replacement),
    unique (chain, hash)
  )`,
  `create index transaction_unfinished on transaction (chain, lane_id, nonce) where state not in ('final', 'replaced')`,
  "create index transaction_block on transaction (chain, block_number) where block_number is not null",

  // Token movements that must happen exactly once
  `create table transfer (
    id text primary key,
    purpose text not null check (purpose in ('payment', 'settlement', 'refund')),
    payment_id text references payment,
    settlement_id text references settlement,
    chain text not null,
    asset text not null,
    token text not null,
    payer text not null,
    receiver text not null,
    amount numeric(78,0) not null check (amount > 0),
    authorization_nonce text not null,
    valid_before bigint not null,
    signature bytea not null,
    state text not null,
    lane_id text references lane,
    lane_nonce bigint,
    alone boolean not null default false,
    hold_until timestamptz,
    troubles integer not null default 0,
    last_trouble text,
    created_at timestamptz not null,
    due_at timestamptz,
    due_try integer not null default 0,
    unique (chain, token, payer, authorization_nonce),
    check ((purpose = 'payment') = (payment_id is not null)),
    check ((purpose = 'settlement') = (settlement_id is not null))
  )`,
  "create unique index transfer_payment on transfer (payment_id) where purpose = 'payment'",
  "create unique index transfer_settlement on transfer (settlement_id) where purpose = 'settlement'",
  "create index transfer_authorization on transfer (authorization_nonce)",
  "create index transfer_ready on transfer (chain, created_at) where state = 'ready'",
  "create index transfer_due on transfer (due_at) where due_at is not null",
  "create index transfer_slot on transfer (lane_id, lane_nonce) where lane_id is not null",
  "create index transfer_unfinished on transfer (chain, state) where state not in ('confirmed', 'ended')",

  // What was seen on chain
  `create table chain_cursor (
    chain text primary key,
    number bigint not null,
    hash text not null,
    final_number bigint not null,
    reached_head_at timestamptz,
    fence bigint not null default 0,
    owner text,
    lease_until timestamptz,
    due_at timestamptz,
    due_try integer not null default 0
  )`,
  `create table chain_block (
    chain text not null,
    number bigint not null,
    hash text not null,
    parent_hash text not null,
    base_fee numeric(78,0) not null,
    at timestamptz not null,
    primary key (chain, number)
  )`,
  `create table sighting (
    chain text not null,
    block_hash text not null,
    log_index integer not null,
    block_number bigint not null,
    tx_hash text not null,
    token text not null,
    payer text not null,
    receiver text not null,
    amount numeric(78,0) not null,
    authorization_nonce text,
    transfer_id text references transfer,
    orphaned boolean not null default false,
    seen_at timestamptz not null,
    primary key (chain, block_hash, log_index)
  )`,
  "create unique index sighting_one_claim on sighting (transfer_id) where transfer_id is not null and not orphaned",
  "create index sighting_authorization on sighting (authorization_nonce) where authorization_nonce is not null",
  "create index sighting_block on sighting (chain, block_number)",

  // Money: double entry, append only
  `create table ledger_group (
    id bigint generated always as identity primary key,
    kind text not null,
    subject text not null,
    chain text,
    block_number bigint,
    block_hash text,
    tx_hash text,
    log_index integer,
    at timestamptz not null,
    unique (kind, subject)
  )`,
  "create index ledger_group_subject on ledger_group (subject)",
  `create table ledger_entry (
    id bigint generated always as identity primary key,
    group_id bigint not null references ledger_group,
    account text not null,
    asset text not null,
    amount numeric(78,0) not null check (amount <> 0)
  )`,
  "create index ledger_entry_group on ledger_entry (group_id)",
  "create index ledger_entry_account on ledger_entry (account, asset)",
  `create table merchant_balance (
    merchant_id text not null references merchant,
    asset text not null,
    amount numeric(78,0) not null check (amount >= 0),
    next_settlement integer not null default 1,
    primary key (merchant_id, asset)
  )`,
  `create function refuse_change() returns trigger language plpgsql as $$
  begin
    raise exception '% is append only', tg_table_name;
  end $$`,
  `create trigger ledger_entry_append_only before update or delete or truncate on ledger_entry
    for each statement execute function refuse_change()`,
  `create trigger ledger_group_append_only before update or delete or truncate on ledger_group
    for each statement execute function refuse_change()`,
  `create trigger event_append_only before update or delete or truncate on event
    for each statement execute function refuse_change()`,
  `create function ledger_group_sums_to_zero() returns trigger language plpgsql as $$
  begin
    if exists (select from ledger_entry where group_id = new.group_id group by asset having sum(amount) <> 0) then
      raise exception 'ledger group % does not sum to zero', new.group_id;
    end if;
    return null;
  end $$`,
  `create constraint trigger ledger_entry_balanced after insert on ledger_entry
    deferrable initially deferred for each row execute function ledger_group_sums_to_zero()`,

  // A row that begins to exist is the first move of its machine
  `create function record_birth() returns trigger language plpgsql as $$
  begin
    insert into event (machine, subject, from_state, to_state, at)
    values (tg_table_name, new.id, 'new', new.state, new.created_at);
    return null;
  end $$`,
  ...["payment", "attempt", "transfer", "settlement"].map(
    (machine) => `create trigger ${machine}_birth after insert on ${machine}
    for each row execute function record_birth()`,
  ),

  `create function record_transaction() returns trigger language plpgsql as $$
  begin
    if tg_op = 'INSERT' then
      insert into event (machine, subject, from_state, to_state, at)
      values ('transaction', new.hash, 'new', new.state, new.created_at);
    elsif old.state <> new.state then
      insert into event (machine, subject, from_state, to_state, at)
      values ('transaction', new.hash, old.state, new.state, clock_timestamp());
    end if;
    return null;
  end $$`,
  `create trigger transaction_move after insert or update of state on transaction
    for each row execute function record_transaction()`,

  // What operators did by hand
  `create table operator_action (
    id bigint generated always as identity primary key,
    who text not null,
    action text not null,
    queue text,
    job_id text,
    at timestamptz not null
  )`,
];
