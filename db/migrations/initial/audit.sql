-- The audit log: one row for every change that an API key, an operator or a worker made. Append only, and chained by
-- hashes (docs/decisions/audit-log.md), so that a changed or missing row can be found without trusting this database.

-- `before` and `after` are json, not jsonb, because the hash covers their text.
create table audit_entry (
  day date not null,
  sequence integer not null,
  -- Postgres and JavaScript write a time within these bounds in the same way.
  at timestamptz not null check (at >= '1970-01-01T00:00:00Z' and at < '10000-01-01T00:00:00Z'),
  actor_kind text not null check (actor_kind in ('key', 'operator', 'worker', 'login')),
  actor_id text not null,
  actor_address text,
  action text not null,
  subject text not null,
  before json,
  after json,
  hash bytea not null,
  -- Shows `require_audit_entry` which changes have an entry.
  transaction_id xid8 not null default pg_current_xact_id(),
  primary key (day, sequence)
);
create index audit_entry_subject on audit_entry (subject);

-- The last row of each day that has ended. A day with a head takes no more rows.
create table audit_head (
  day date primary key,
  sequence integer not null,
  hash bytea not null,
  at timestamptz not null,
  exported_at timestamptz,
  foreign key (day, sequence) references audit_entry
);

-- Held until the transaction ends, so that each writer reads the row that the one before it committed.
create function lock_audit_chain() returns void language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    perform from named_lock where name = 'audit chain' for update;
    if not found then
      raise exception 'the table named_lock lacks the audit chain';
    end if;
  end $$;

-- The text that the hash of a row covers: a JSON array without spaces. runtime/audit-chain.ts writes the same text.
create function audit_entry_text(entry audit_entry, previous bytea) returns text language sql stable
  set search_path = pg_catalog, public, pg_temp as $$
  select '[' || array_to_string(array[
    to_json(entry.day::text)::text,
    to_json(entry.sequence)::text,
    to_json(to_char(entry.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::text,
    to_json(entry.actor_kind)::text,
    to_json(entry.actor_id)::text,
    to_json(entry.actor_address)::text,
    to_json(entry.action)::text,
    to_json(entry.subject)::text,
    to_json(entry.before::text)::text,
    to_json(entry.after::text)::text,
    to_json(encode(previous, 'hex'))::text
  ], ',', 'null') || ']'
  $$;

-- Gives a new row its day, its number within the day and its hash. The day is that of `at`, or the newest day of the
-- chain when that is later: a row never goes before rows that exist, nor into a day that has ended. A row whose `at` is
-- in the future goes into the present day. Otherwise one row could keep every later one in a day that does not end.
create function chain_audit_entry() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  declare
    newest record;
  begin
    perform lock_audit_chain();
    select day, sequence, hash into newest from audit_entry order by day desc, sequence desc limit 1;
    new.at := date_trunc('milliseconds', new.at);
    new.day := greatest(
      (least(new.at, clock_timestamp()) at time zone 'UTC')::date, newest.day, (select max(audit_head.day) + 1 from audit_head)
    );
    new.sequence := case when new.day = newest.day then newest.sequence + 1 else 1 end;
    new.hash := sha256(convert_to(audit_entry_text(new, newest.hash), 'UTF8'));
    return new;
  end $$;
create trigger audit_entry_chained before insert on audit_entry for each row execute function chain_audit_entry();
create trigger audit_entry_append_only before update or delete or truncate on audit_entry
  for each statement execute function reject_change();
