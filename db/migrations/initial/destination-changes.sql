-- Requests to change where merchants are paid: who asked, who decided, and when each applies. settlement_destination
-- holds the result of the applied ones; payouts and buyers' options read nothing else. Only the trigger below writes its
-- accounts, so that no process redirects a payout without a change, whose event the merchant receives.

create table destination_change (
  id text primary key,
  -- By its last two digits a change that waits has an alert of its own.
  number bigint generated always as identity,
  merchant_id text not null references merchant,
  destination_id text not null,
  asset text not null,
  given_asset text check (lower(given_asset) = lower(asset)),
  before text,
  after text,
  state text not null,
  requester_kind text not null check (requester_kind in ('key', 'operator')),
  requester_id text not null,
  requester_address text,
  created_at timestamptz not null,
  applies_at timestamptz not null,
  decider_kind text check (decider_kind in ('key', 'operator')),
  decider_id text,
  decider_address text,
  decided_at timestamptz,
  rejection text check (rejection in ('decided', 'withdrawn', 'replaced')),
  applied_at timestamptz,
  -- When the signer was told of the change in its present state, as far as the state matters to it.
  reported_at timestamptz,
  check ((state = 'applied') = (applied_at is not null)),
  check ((state = 'rejected') = (rejection is not null)),
  check ((decider_kind is null) = (decided_at is null) and (decider_kind is null) = (decider_id is null))
);
create unique index destination_change_waiting on destination_change (merchant_id, asset) where state = 'requested';
create index destination_change_due on destination_change (applies_at) where state = 'requested';
create index destination_change_merchant on destination_change (merchant_id, created_at, id);
create index destination_change_left on destination_change (applied_at) where before is not null and state = 'applied';

create index destination_change_unreported on destination_change (created_at) where reported_at is null;

create trigger destination_change_known_moves before update of state on destination_change for each row
  when (old.state <> new.state and (old.state, new.state) not in (
    ('requested', 'approved'), ('requested', 'applied'), ('requested', 'rejected'), ('approved', 'applied')))
  execute function reject_unknown_move();
-- The signer is told of a change again when it applies or is rejected. Only workers may write `reported_at`, so no other login keeps
-- a change from the signer.
create function report_ended_change() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  begin
    new.reported_at := null;
    return new;
  end $$;
create trigger destination_change_ended before update of state on destination_change for each row
  when (new.state in ('applied', 'rejected') and old.state <> new.state) execute function report_ended_change();
create trigger destination_change_insert_events after insert on destination_change referencing new table as added
  for each statement execute function record_insert_events();

-- Adds, changes or removes the destination of a change that has applied.
create function apply_destination_change() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    if new.after is null then
      delete from settlement_destination
        where id = new.destination_id and merchant_id = new.merchant_id and asset = new.asset;
    else
      insert into settlement_destination as d (id, merchant_id, asset, given_asset, destination, created_at, updated_at)
        values (new.destination_id, new.merchant_id, new.asset, new.given_asset, new.after, new.applied_at, new.applied_at)
        on conflict (id) do update set destination = excluded.destination, updated_at = excluded.updated_at
        where d.merchant_id = excluded.merchant_id and d.asset = excluded.asset;
      if not found then
        raise exception 'a change of % cannot apply to the destination %', new.merchant_id, new.destination_id;
      end if;
    end if;
    return null;
  end $$;
create trigger destination_change_applied after update of state on destination_change for each row
  when (new.state = 'applied' and old.state <> 'applied') execute function apply_destination_change();

create trigger destination_change_kept before delete or truncate on destination_change
  for each statement execute function reject_change();

-- Statements that operators and merchants have signed, on their way to the signer. It verifies the signatures, so a changed
-- row decides nothing. `subject` is the change or the refund that the statement is about.
create table signed_statement (
  id bigint generated always as identity primary key,
  subject text not null,
  text text not null,
  signer text not null,
  signature text not null,
  created_at timestamptz not null,
  reported_at timestamptz,
  outcome text,
  unique (text, signer)
);
create index signed_statement_subject on signed_statement (subject);
create index signed_statement_unreported on signed_statement (id) where reported_at is null;

-- The Ed25519 public keys, in hex, by which merchants approve changes of their destinations. The service never has the
-- private halves. A revoked key stays revoked: the merchant registers another one.
create table approval_key (
  merchant_id text not null references merchant,
  public_key text not null check (public_key ~ '^[0-9a-f]{64}$'),
  registrar_kind text not null check (registrar_kind in ('key', 'operator')),
  registrar_id text not null,
  registrar_address text,
  created_at timestamptz not null,
  -- When it counts in the service. The signer waits by its own clock.
  applies_at timestamptz not null,
  revoked_at timestamptz,
  revoker_kind text check (revoker_kind in ('key', 'operator')),
  revoker_id text,
  revoker_address text,
  -- When the signer was told of the key as it is now.
  reported_at timestamptz,
  primary key (merchant_id, public_key),
  check ((revoker_kind is null) = (revoker_id is null) and (revoked_at is not null or revoker_kind is null))
);
create index approval_key_reported on approval_key (reported_at);

-- Takes the lock of the reports to the signer until the transaction ends. Returns false when another worker has it.
create function try_lock_destination_reports() returns boolean language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    perform from named_lock where name = 'destination reports' for update skip locked;
    if found then
      return true;
    end if;
    perform from named_lock where name = 'destination reports';
    if not found then
      raise exception 'the table named_lock lacks the destination reports';
    end if;
    return false;
  end $$;
