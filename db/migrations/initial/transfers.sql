-- Token transfers, the lanes that relay them, and the lanes' signed transactions.

create table lane (
  id text primary key,
  chain text not null,
  address text not null,
  next_nonce bigint not null,
  fence bigint not null default 0,
  owner text,
  lease_until timestamptz,
  wake_requested boolean not null default false,
  unique (chain, address)
);

create table transaction (
  lane_id text not null references lane,
  nonce bigint not null,
  replacement integer not null default 0,
  chain text not null,
  hash text not null,
  bytes bytea not null,
  gas_limit numeric(78,0) not null,
  max_fee_per_gas numeric(78,0) not null,
  max_priority_fee_per_gas numeric(78,0) not null,
  last_valid_height bigint,
  -- EVM: the newest block that was read when it was signed. Solana: a block height that endpoints reported after it was signed.
  signed_height bigint,
  nonce_account text,
  nonce_value text,
  nonce_slot bigint,
  state text not null,
  created_at timestamptz not null,
  broadcast_at timestamptz,
  block_number bigint,
  block_id text,
  gas_used numeric(78,0),
  gas_price numeric(78,0),
  fee numeric(78,0) check (fee >= 0),
  reverted boolean,
  primary key (lane_id, nonce, replacement),
  unique (chain, hash)
);
create index transaction_unfinished on transaction (chain, lane_id, nonce) where state not in ('final', 'replaced');
create index transaction_block on transaction (chain, block_number) where block_number is not null;
-- At most one live transaction and its replacements use a durable nonce account (Solana). The first one lives as long as any of them.
create unique index transaction_nonce_account on transaction (chain, nonce_account, replacement)
  where nonce_account is not null and state in ('signed', 'broadcast', 'accepted', 'included');

create function record_transaction_inserts() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into event (machine, subject, from_state, to_state, at)
    select 'transaction', hash, 'new', state, created_at from added;
    return null;
  end $$;
create trigger transaction_insert_events after insert on transaction referencing new table as added
  for each statement execute function record_transaction_inserts();

-- The plan is made once, for the rows of the first statement. Without nested loops it is good for any number of them.
create function record_transaction_moves() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp set enable_nestloop = off as $$
  begin
    insert into event (machine, subject, from_state, to_state, at)
    select 'transaction', moved.hash, former.state, moved.state, clock_timestamp()
    from moved join former using (lane_id, nonce, replacement) where moved.state <> former.state;
    return null;
  end $$;
create trigger transaction_move_events after update on transaction
  referencing old table as former new table as moved
  for each statement execute function record_transaction_moves();

-- Token movements, each of which must happen exactly once.
create table transfer (
  id text primary key,
  purpose text not null check (purpose in ('payment', 'settlement', 'refund', 'cold')),
  payment_id text references payment,
  settlement_id text references settlement,
  refund_id text references refund,
  kind text not null default 'eip3009' check (kind in ('eip3009', 'permit2', 'disburse', 'push', 'spl')),
  chain text not null,
  asset text not null,
  token text not null,
  payer text not null,
  receiver text not null,
  amount numeric(78,0) not null check (amount > 0),
  authorization_nonce text not null,
  -- EVM: when the authorization expires, Unix seconds.
  valid_before bigint,
  -- Solana: the last block height at which the buyer's transaction can be included; null for a durable nonce.
  last_valid_height bigint,
  signature bytea,
  permit bytea,
  smart_wallet boolean not null default false,
  code_hash text,
  state text not null,
  lane_id text references lane,
  lane_nonce bigint,
  alone boolean not null default false,
  hold_until timestamptz,
  retries integer not null default 0,
  last_error text,
  created_at timestamptz not null,
  due_at timestamptz,
  due_retries integer not null default 0,
  -- The nonce comes first, so that the index also serves searches by the nonce alone.
  unique (authorization_nonce, chain, token, payer),
  check ((kind = 'spl') = (valid_before is null)),
  check (kind = 'spl' or last_valid_height is null),
  check ((purpose = 'payment') = (payment_id is not null)),
  check ((purpose = 'settlement') = (settlement_id is not null)),
  check ((purpose = 'refund') = (refund_id is not null))
);
-- One that has ended may be followed by another one (payments/lifecycle/replace-unsent.ts).
create unique index transfer_payment on transfer (payment_id, (case when state = 'ended' then id end)) nulls not distinct
  where purpose = 'payment';
create unique index transfer_settlement on transfer (settlement_id) where purpose = 'settlement';
create unique index transfer_refund on transfer (refund_id) where purpose = 'refund';
-- In the order of the claims, which therefore stop at their limit whatever the statistics say of a backlog.
create index transfer_ready on transfer (chain, (retries > 0), (purpose = 'refund'), created_at, id) where state = 'ready';
create index transfer_due on transfer (chain, due_at) where due_at is not null;
create index transfer_lane_nonce on transfer (lane_id, lane_nonce) where lane_id is not null;
create index transfer_unfinished on transfer (chain, state) where state not in ('confirmed', 'ended');
-- Amounts that a payer has authorized and not paid yet.
create index transfer_pending_by_payer on transfer (chain, payer) where state in ('ready', 'assigned');
create trigger transfer_insert_events after insert on transfer referencing new table as added
  for each statement execute function record_insert_events();

-- Stores the signatures of a confirm with its payment's transfer, if that has none and is awaited or included. An awaited
-- transfer becomes ready, and its id is returned. The api calls it, because it may not write transfers.
create function attach_signatures(of_payment text, with_signature bytea, with_permit bytea, moved_at timestamptz)
  returns setof text language sql
  security definer set search_path = pg_catalog, public, pg_temp as $$
    with signed as (
      select id, state from transfer
      where payment_id = of_payment and purpose = 'payment' and signature is null and state in ('awaited', 'included')
      for update
    ), stored as (
      update transfer t set signature = with_signature, permit = with_permit,
        state = case s.state when 'awaited' then 'ready' else s.state end,
        due_at = case s.state when 'awaited' then moved_at else t.due_at end
      from signed s where s.id = t.id
    )
    insert into event (machine, subject, from_state, to_state, at)
    select 'transfer', id, 'awaited', 'ready', moved_at from signed where state = 'awaited'
    returning subject
  $$;

-- The gas that included transactions burned on a transfer: all of it when they moved no money; when they did (`moved`), what a contract
-- wallet took beyond its share (transfers/list-burned.ts). `alone`: the transaction had no other transfer.
create table burned_gas (
  transfer_id text not null references transfer,
  lane_id text not null references lane,
  nonce bigint not null,
  chain text not null,
  payer text not null,
  code_hash text,
  gas numeric(78,0) not null check (gas >= 0),
  alone boolean not null,
  moved boolean not null default false,
  block_number bigint not null,
  at timestamptz not null,
  primary key (transfer_id, lane_id, nonce)
);
create index burned_gas_recent on burned_gas (chain, at);
