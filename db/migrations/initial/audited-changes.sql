-- Changes that outlive a stolen login: where merchants are paid, and what gives access. Each has its entry in the audit log, also
-- one that was made with a login of this database and without the service.

-- Inserts the entry of a change at the commit, unless the transaction has inserted it. The arguments are the entry's action and
-- the column that is its subject. A thief can name any actor in an entry of their own, but cannot go without one.
create function require_audit_entry() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  declare
    about text := to_jsonb(new) ->> tg_argv[1];
  begin
    if not exists (
      select from audit_entry where subject = about and action = tg_argv[0] and transaction_id = pg_current_xact_id()
    ) then
      insert into audit_entry (at, actor_kind, actor_id, actor_address, action, subject)
      values (clock_timestamp(), 'login', session_user, host(inet_client_addr()), tg_argv[0], about);
    end if;
    return null;
  end $$;

create constraint trigger api_key_created_audited after insert on api_key deferrable initially deferred
  for each row execute function require_audit_entry('api_key.created', 'id');
create constraint trigger api_key_rotated_audited after update on api_key deferrable initially deferred
  for each row when ((old.hash, old.previous_hash, old.previous_until) is distinct from (new.hash, new.previous_hash, new.previous_until))
  execute function require_audit_entry('api_key.rotated', 'id');
create constraint trigger app_id_created_audited after insert on app_id deferrable initially deferred
  for each row execute function require_audit_entry('app_id.created', 'id');
create constraint trigger approval_key_registered_audited after insert on approval_key deferrable initially deferred
  for each row execute function require_audit_entry('approval_key.registered', 'merchant_id');
create constraint trigger webhook_endpoint_created_audited after insert on webhook_endpoint deferrable initially deferred
  for each row execute function require_audit_entry('webhook_endpoint.created', 'id');
create constraint trigger webhook_endpoint_updated_audited after update on webhook_endpoint deferrable initially deferred
  for each row when (
    (old.url, old.event_types, old.merchant_ids, old.payload) is distinct from
      (new.url, new.event_types, new.merchant_ids, new.payload)
    or (old.disabled_at is distinct from new.disabled_at and new.disabled_reason is distinct from 'failing'))
  execute function require_audit_entry('webhook_endpoint.updated', 'id');
-- Workers disable an endpoint that fails for days, and write the entry.
create constraint trigger webhook_endpoint_disabled_audited after update on webhook_endpoint deferrable initially deferred
  for each row when (old.disabled_at is distinct from new.disabled_at and new.disabled_reason = 'failing')
  execute function require_audit_entry('webhook_endpoint.disabled', 'id');
create constraint trigger webhook_endpoint_deleted_audited after update on webhook_endpoint deferrable initially deferred
  for each row when (old.deleted_at is distinct from new.deleted_at)
  execute function require_audit_entry('webhook_endpoint.deleted', 'id');
-- Operators encrypt secrets to another key, with one entry for all.
create constraint trigger webhook_endpoint_secret_audited after update on webhook_endpoint deferrable initially deferred
  for each row when (
    (old.key_id, old.secret, old.previous_key_id, old.previous_secret, old.previous_until) is distinct from
      (new.key_id, new.secret, new.previous_key_id, new.previous_secret, new.previous_until)
    and not pg_has_role('pay_admin', 'usage'))
  execute function require_audit_entry('webhook_endpoint.secret_rotated', 'id');
create constraint trigger destination_change_applied_audited after update on destination_change deferrable initially deferred
  for each row when (old.state <> new.state and new.state = 'applied')
  execute function require_audit_entry('destination.change_applied', 'destination_id');

-- A former secret works for 30 days at most, whatever the api's login writes. The minute is for clocks.
create function limit_former_secret() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  begin
    raise exception 'the former secret of % would work for over 30 days', new.id;
  end $$;
create trigger api_key_former_secret before insert or update on api_key for each row
  when (new.previous_until > clock_timestamp() + interval '30 days 1 minute') execute function limit_former_secret();

-- What was revoked or deleted stays so.
create function reject_reinstatement() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  begin
    raise exception 'a row of % stays %', tg_table_name, tg_argv[0];
  end $$;
create trigger webhook_endpoint_stays_deleted before update on webhook_endpoint for each row
  when (old.deleted_at is distinct from new.deleted_at and old.deleted_at is not null)
  execute function reject_reinstatement('deleted');
create trigger api_key_revoked before update on api_key for each row
  when (old.revoked_at is distinct from new.revoked_at and old.revoked_at is not null)
  execute function reject_reinstatement('revoked');
create trigger app_id_revoked before update on app_id for each row
  when (old.revoked_at is distinct from new.revoked_at and old.revoked_at is not null)
  execute function reject_reinstatement('revoked');
create trigger approval_key_revoked before update on approval_key for each row
  when (old.revoked_at is distinct from new.revoked_at and old.revoked_at is not null)
  execute function reject_reinstatement('revoked');
