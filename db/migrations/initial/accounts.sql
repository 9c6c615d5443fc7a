-- Accounts, their credentials, and the responses that are kept for idempotency.

create table account (
  id text primary key,
  name text not null,
  -- The version of the HTTP contract that the account's clients were built against.
  api_version text not null default '2026-02-18',
  -- Whether wallets and checkout pages may cancel the account's payments.
  wallet_cancellation_allowed boolean not null default true,
  -- How long a change of where its merchants are paid waits before it applies.
  destination_waiting_hours integer not null default 72 check (destination_waiting_hours between 0 and 720),
  created_at timestamptz not null
);

create table api_key (
  id text primary key,
  account_id text not null references account,
  mode text not null check (mode in ('test', 'live')),
  hash bytea not null unique,
  hint text not null,
  -- The secret before the last rotation, which works until previous_until.
  previous_hash bytea unique,
  previous_until timestamptz,
  scopes text[] not null check (
    cardinality(scopes) > 0 and scopes <@ array[
      'gateway', 'payments:read', 'payments:write', 'refunds', 'merchants', 'settlements', 'settlements:approve',
      'webhooks', 'keys'
    ]
  ),
  -- The only merchants that the key reaches; null: all of the account and mode, also later ones.
  merchant_ids text[] check (cardinality(merchant_ids) > 0),
  -- The only ranges of addresses that the key works from; null: any address.
  allowed_cidrs text[] check (cardinality(allowed_cidrs) > 0),
  expires_at timestamptz,
  -- The key that created this one over the API; null: an operator did.
  created_by text references api_key,
  created_at timestamptz not null,
  revoked_at timestamptz,
  -- Written at most once a minute.
  last_used_at timestamptz,
  last_used_address text,
  check ((previous_hash is null) = (previous_until is null))
);
create index api_key_account on api_key (account_id);

-- The keys that have made a secret of a key, by creating or rotating it: each was returned that secret. A row stays when the secret has
-- ended, because its holder may have created keys with it, or have rotated the key once more.
create table api_key_maker (
  maker_id text not null references api_key,
  key_id text not null references api_key,
  primary key (maker_id, key_id)
);

create table app_id (
  id text primary key,
  account_id text not null references account,
  mode text not null check (mode in ('test', 'live')),
  created_at timestamptz not null,
  revoked_at timestamptz
);
create index app_id_account on app_id (account_id, created_at desc, id desc);

-- Origins that may frame the data page of an account's payments. An origin becomes part of a response header, so its
-- form is checked here too.
create table frame_origin (
  account_id text not null references account,
  origin text not null check (
    length(origin) <= 255 and origin ~ '^(https://[a-z0-9]([-a-z0-9.]*[a-z0-9])?|http://localhost)(:[0-9]{1,5})?$'
  ),
  created_at timestamptz not null,
  primary key (account_id, origin)
);

-- Responses to requests that carry an idempotency key: a repeated request gets the stored response. The keys of each
-- merchant are separate, so that an API key of one merchant cannot observe another's.
create table idempotency (
  account_id text not null references account,
  mode text not null check (mode in ('test', 'live')),
  -- The merchant that the request names; empty for a request that names none.
  merchant_id text not null,
  operation text not null,
  key text not null,
  digest bytea not null,
  status integer,
  response_body text,
  created_at timestamptz not null,
  primary key (account_id, mode, merchant_id, operation, key)
);
create index idempotency_created on idempotency (created_at);
