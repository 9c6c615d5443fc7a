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

-- The board cannot write the two times: a session that it inserts ends after 12 hours too.
create table operator_session (
  token_hash bytea primary key,
  operator text not null references operator,
  address text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '12 hours'
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

-- The board signs operators in and runs failed jobs again. Its role cannot write to the audit log: these functions make
-- its entries, with words and an operator that it does not choose freely.
create function record_sign_in() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into audit_entry (at, actor_kind, actor_id, actor_address, action, subject)
    values (now(), 'operator', new.operator, new.address, 'operator.signed_in', new.operator);
    return null;
  end $$;
create trigger operator_session_signed_in after insert on operator_session
  for each row execute function record_sign_in();

-- Records that the operator of a session runs failed jobs again: one job of a queue, or several where `job` is null.
create function record_retried_jobs(session_hash bytea, queue text, job text, jobs integer) returns void language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  declare
    session operator_session;
  begin
    select s.* into session from operator_session s join operator o on o.name = s.operator
    where s.token_hash = session_hash and s.expires_at > now()
      and o.disabled_at is null and o.role in ('operator', 'approver');
    if session is null then
      raise exception 'no operator has this session' using errcode = 'insufficient_privilege';
    end if;
    if not (queue ~ '^[a-z-]{1,40}$' and coalesce(job, 'none') ~ '^[A-Za-z0-9_.:-]{1,200}$' and jobs between 1 and 1000000) then
      raise exception 'the queue, the job or the number of jobs is not valid' using errcode = 'check_violation';
    end if;
    insert into audit_entry (at, actor_kind, actor_id, actor_address, action, subject, after)
    values (
      now(), 'operator', session.operator, session.address,
      case when job is null then 'failed_jobs.retried' else 'job.retried' end, concat_ws('/', queue, job),
      format('{"jobs":%s}', jobs)::json
    );
  end $$;
