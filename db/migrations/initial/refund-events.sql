-- The events of refunds of payments. They commit with the change itself, as those of payments do. A refund that is only
-- recorded succeeds as it is created. Each event occurs at most once: a refund that is held is only withdrawn.
--
-- A refund may end after its payment was passed by the removal of history. The payment is then checked again, until the
-- events of the refund have left.

create function add_refund_events() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into webhook_event (account_id, mode, merchant_id, type, refund_id, state_version, at)
    select new.account_id, new.mode, new.merchant_id, 'refund.' || named.stage, new.id,
      case named.stage when 'created' then 0 when 'held' then 1 else 2 end, new.updated_at
    from unnest(case
      when tg_op = 'INSERT' and new.state = 'marked' then array['created', 'succeeded']
      when tg_op = 'INSERT' then array['created']
      when new.state = 'held' then array['held']
      when new.state = 'paid' then array['succeeded']
      when new.state = 'withdrawn' then array['failed'] end) as named (stage)
    -- A refund of an exception belongs to no account.
    where new.account_id is not null;
    insert into retained_payment (relation, payment_id, retry_at)
    select 'webhook_event', new.payment_id, new.updated_at + interval '1 day'
    where new.payment_id is not null and new.state in ('paid', 'marked', 'withdrawn')
    on conflict do nothing;
    return null;
  end $$;
create trigger refund_insert_webhook after insert on refund
  for each row execute function add_refund_events();
create trigger refund_state_webhook after update of state on refund
  for each row when (old.state is distinct from new.state) execute function add_refund_events();
