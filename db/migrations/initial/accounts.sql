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
  scopes text[] not null,
  created_at timestamptz not null,
  revoked_at timestamptz
);

create table app_id (
  id text primary key,
  account_id text not null references account,
  mode text not null check (mode in ('test', 'live')),
  created_at timestamptz not null,
  revoked_at timestamptz
);

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

-- Responses to requests that carry an idempotency key: a repeated request gets the stored response.
create table idempotency (
  account_id text not null references account,
  mode text not null check (mode in ('test', 'live')),
  operation text not null,
  key text not null,
  digest bytea not null,
  status integer,
  response_body text,
  created_at timestamptz not null,
  primary key (account_id, mode, operation, key)
);
create index idempotency_created on idempotency (created_at);
