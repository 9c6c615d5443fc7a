-- What the watchers have read from the chains. In these tables and in others, `block_id` identifies a block on its chain: by
-- its hash on EVM chains, by its slot on Solana, whose transaction statuses name no block hash.

-- One row. `count` only grows: a smaller count than one that was seen before means that the database was restored to an
-- earlier time.
create table database_epoch (
  singleton boolean primary key default true check (singleton),
  id text not null,
  count bigint not null,
  counted_at timestamptz not null,
  identity text not null,
  began_at timestamptz,
  -- The last count before the restored moment: commits after it may be lost.
  lost_since timestamptz
);

-- Identifies the database server as far as the owner of this function may ask: system, timeline, table. The identity
-- changes when a replica is promoted and when a dump is restored, and is the same for every role.
create function database_identity(epoch_table oid) returns text
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
  declare
    system text := '-';
    timeline text := '-';
  begin
    begin
      system := (select system_identifier::text from pg_control_system());
    exception when insufficient_privilege or undefined_function or feature_not_supported then null;
    end;
    begin
      timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    exception when insufficient_privilege or undefined_function or feature_not_supported then null;
    end;
    return concat_ws('/', system, timeline, epoch_table);
  end $$;

insert into database_epoch (id, count, counted_at, identity)
  values (gen_random_uuid()::text, 0, now(), database_identity('database_epoch'::regclass));

create table chain_cursor (
  chain text primary key,
  number bigint not null,
  block_id text not null,
  final_number bigint not null,
  created_at timestamptz not null default now(),
  reached_head_at timestamptz,
  chain_time timestamptz,
  -- The assets of which everything up to the cursor has been read.
  assets text[] not null default '{}',
  reconcile_at timestamptz not null default now(),
  fence bigint not null default 0,
  owner text,
  lease_until timestamptz,
  -- The database epoch in which the chain was read again, and the height up to which that is still to be done.
  epoch text,
  epoch_height bigint,
  due_at timestamptz,
  due_retries integer not null default 0
);

create table chain_block (
  chain text not null,
  number bigint not null,
  hash text not null,
  parent_hash text not null,
  base_fee numeric(78,0) not null,
  at timestamptz not null,
  -- The endpoint that returned the block.
  source_endpoint text,
  primary key (chain, number)
);

-- An asset that was configured again after an interruption: its movements above `number` are read again up to `until`.
create table asset_backfill (
  chain text not null references chain_cursor,
  asset text not null,
  number bigint not null,
  until bigint,
  since timestamptz not null,
  primary key (chain, asset)
);

-- Unmatched deposits below an asset's dust amount: one row per asset and day, and one exception when the day is over.
create table dust (
  id bigint generated always as identity primary key,
  chain text not null,
  asset text not null,
  day date not null,
  amount numeric(78,0) not null check (amount > 0),
  transfers integer not null,
  last_block bigint not null,
  group_id bigint references ledger_group,
  unique (chain, asset, day)
);
create index dust_open on dust (chain, day) where group_id is null;

-- Token movements that were observed in blocks. On Solana, `log_index` counts the movements of one transaction, so the
-- transaction is part of the key.
create table observation (
  chain text not null,
  block_id text not null,
  tx_hash text not null,
  log_index integer not null,
  block_number bigint not null,
  token text not null,
  payer text not null,
  receiver text not null,
  amount numeric(78,0) not null,
  authorization_nonce text,
  transfer_id text references transfer,
  orphaned boolean not null default false,
  booked boolean not null default false,
  dust_id bigint references dust,
  observed_at timestamptz not null,
  -- The block's time; null if it was not read.
  moved_at timestamptz,
  recorded_late boolean not null default false,
  primary key (chain, block_id, tx_hash, log_index)
);
create unique index observation_one_per_transfer on observation (transfer_id) where transfer_id is not null and not orphaned;
create index observation_authorization on observation (authorization_nonce) where authorization_nonce is not null;
create index observation_block on observation (chain, block_number);
create index observation_dust on observation (dust_id) where dust_id is not null;
create index observation_unmatched on observation (chain, block_number) where transfer_id is null and not orphaned and not booked;
-- Unmatched movements that are booked and that a reorg below the final height has removed.
create index observation_orphaned_booking on observation (chain, tx_hash) where orphaned and booked;
-- Movements that carry a payout's nonce and belong to no transfer: few, and read before every payout.
create index observation_unclaimed on observation (chain, payer)
  where transfer_id is null and authorization_nonce is not null and not orphaned;

-- Exceptions by their payers.
create index observation_exception on observation (payer) where transfer_id is null and dust_id is null;

-- Rows that could not be booked. The watcher skips them until `retry_at`, so that they block nothing else.
create table failed_booking (
  id bigint generated always as identity primary key,
  chain text not null,
  kind text not null check (kind in ('movement', 'unmatched', 'dust', 'transfer', 'ended', 'transaction')),
  subject text not null,
  block_number bigint,
  movement jsonb,
  error text not null,
  retries integer not null default 0,
  first_at timestamptz not null,
  last_at timestamptz not null,
  retry_at timestamptz not null,
  unique (chain, kind, subject),
  check ((kind = 'movement') = (movement is not null and block_number is not null))
);

-- The RPC endpoints of the networks file, by name, as each worker last saw them: the board does not have the file, whose URLs
-- contain keys. A worker replaces its rows every 30 seconds.
create table rpc_endpoint (
  chain text not null,
  name text not null,
  worker text not null,
  reported_at timestamptz not null,
  answered_at timestamptz,
  failed_at timestamptz,
  -- The code of the last failure.
  error text,
  -- Calls since the worker started, and those of them that failed.
  calls bigint not null,
  failures bigint not null,
  -- The newest block at the last comparison of the chain's endpoints; null where the endpoint is the only one.
  height bigint,
  primary key (chain, name, worker)
);

-- The assets of the networks file, as workers have read them when they started. Assets that have left the file stay.
create table asset_unit (
  asset text primary key,
  symbol text not null,
  decimals integer not null check (decimals between 0 and 255)
);
