-- Merchants, where they are paid, what the operator charges them, and what their buyers must disclose.

-- Copies of merchants' logos. The id is the hash of the content.
create table logo (
  id text primary key,
  content_type text not null,
  bytes bytea not null,
  width integer not null,
  height integer not null,
  created_at timestamptz not null
);

create table merchant (
  id text primary key,
  account_id text not null references account,
  mode text not null check (mode in ('test', 'live')),
  name text not null,
  email text not null,
  status text not null default 'active' check (status in ('active', 'inactive', 'suspended')),
  icon_url text,
  logo_id text references logo,
  payouts_held_at timestamptz,
  created_at timestamptz not null,
  deleted_at timestamptz
);
create index merchant_owned on merchant (account_id, mode, id);
create index merchant_listed on merchant (account_id, mode, created_at desc, id desc) where deleted_at is null;
create index merchant_named on merchant (account_id, mode, lower(email), lower(name)) where deleted_at is null;

create table settlement_destination (
  id text primary key,
  merchant_id text not null references merchant,
  asset text not null,
  -- The asset as the merchant spelled it, where that differs from the form in which assets are compared.
  given_asset text check (lower(given_asset) = lower(asset)),
  destination text not null,
  accumulation_ms integer check (accumulation_ms > 0),
  accumulation_amount numeric(78,0) check (accumulation_amount > 0),
  minimum numeric(78,0) check (minimum > 0),
  accepts_other_assets boolean not null default false,
  direct boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (merchant_id, asset),
  check (accumulation_amount is null or accumulation_ms is not null),
  check (minimum is null or accumulation_ms is not null)
);

-- A watcher reads the movements of the accounts that buyers pay directly (db/queries/direct-receivers.ts).
create index settlement_destination_direct on settlement_destination (destination) where direct;
create index settlement_destination_edited on settlement_destination (updated_at) where updated_at > created_at;

-- The operator's fee: of an account, or of one of its merchants instead. A payment option fixes the fee that applies to it.
create table fee_policy (
  account_id text not null references account,
  merchant_id text references merchant,
  basis_points integer not null check (basis_points between 0 and 10000),
  fixed_micros numeric(78,0) not null check (fixed_micros >= 0),
  updated_at timestamptz not null,
  unique nulls not distinct (account_id, merchant_id)
);

-- Payments for which a buyer must give personal data.
create table collection_policy (
  id text primary key,
  merchant_id text not null references merchant,
  asset text,
  unit text,
  minimum numeric(78,0),
  created_at timestamptz not null,
  check ((unit is null) = (minimum is null))
);
create index collection_policy_merchant on collection_policy (merchant_id);
