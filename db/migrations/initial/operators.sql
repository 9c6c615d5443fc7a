-- The people who operate the service, with their sessions on the queue board and their refused logins.

create table operator (
  name text primary key check (name ~ '^[a-z0-9][a-z0-9._@-]{0,63}$'),
  role text not null check (role in ('viewer', 'operator', 'approver')),
  password_hash text not null,
  totp_key_id text not null,
  totp_secret bytea not null,
  -- The newest 30-second step whose code was accepted: a code is accepted once.
  totp_step bigint not null default 0,
  created_at timestamptz not null,
  disabled_at timestamptz
);

create table operator_session (
  token_hash bytea primary key,
  operator text not null references operator,
  address text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index operator_session_operator on operator_session (operator);

-- Logins that were refused or are being checked. `operator` is the name that was given, which may not exist.
create table operator_login_attempt (
  id bigint generated always as identity primary key,
  operator text not null,
  address text not null,
  at timestamptz not null
);
create index operator_login_attempt_operator on operator_login_attempt (operator, at);
create index operator_login_attempt_address on operator_login_attempt (address, at);

-- What operators request on the pages of the console. The board, which may write nothing else, inserts a request, and a
-- worker carries it out (docs/decisions/operator-console.md). The board cannot write `requested_at`, which limits depend on.
create table operator_request (
  id text primary key check (id ~ '^oreq_[0-9a-f]{32}$'),
  operator text not null references operator,
  address text not null,
  action text not null,
  subject text not null,
  args jsonb not null check (jsonb_typeof(args) = 'object'),
  requested_at timestamptz not null default now(),
  state text not null default 'requested' check (state in ('requested', 'done', 'refused')),
  outcome text,
  ended_at timestamptz,
  check ((state = 'requested') = (ended_at is null))
);
create index operator_request_waiting on operator_request (requested_at) where state = 'requested';
create index operator_request_subject on operator_request (subject, requested_at);
create index operator_request_operator on operator_request (operator, requested_at);
