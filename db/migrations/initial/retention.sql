-- What leaves the tables of history, and when (docs/operations/retention.md).

-- How far each table has been worked through. The rows of payments up to `after_payment` have left, except those of
-- `retained_payment`. Workers store the days that they are configured with; null: the rows stay forever.
create table retention (
  relation text primary key check (relation in ('attempt', 'webhook_event', 'event', 'payment_option')),
  days integer check (days > 0),
  after_payment text not null default '',
  removed bigint not null default 0,
  ran_at timestamptz
);
insert into retention (relation) values ('attempt'), ('webhook_event'), ('event'), ('payment_option');

-- Payments that were passed while some of their rows had to stay. They are checked again at `retry_at`.
create table retained_payment (
  relation text not null references retention,
  payment_id text not null,
  retry_at timestamptz not null,
  error text,
  primary key (relation, payment_id)
);
create index retained_payment_retry on retained_payment (relation, retry_at);
create index retained_payment_failing on retained_payment (relation) where error is not null;

-- Returns those of these payments of which nothing more can happen by itself, and since before a time: final, paid out,
-- refunds finished, no transfer or delivery open, and each chain read beyond the time in which money still counts.
create function payments_at_rest(of_payments text[], before timestamptz) returns setof text language sql stable
  set search_path = pg_catalog, public, pg_temp as $$
    select p.id from payment p
    where p.id = any(of_payments) and p.state in ('succeeded', 'failed', 'expired', 'cancelled')
      and p.created_at < before and p.updated_at < before and p.expires_at < before
      and (p.state <> 'succeeded' or p.direct or p.mode = 'test' or exists (
        select from settlement s where s.id = p.settlement_id
          and (s.state = 'paid' and s.paid_at < before or s.state = 'netted' and s.closed_at < before)))
      and not exists (select from webhook_fanout f where f.settlement_id = p.settlement_id)
      and not exists (select from refund r where r.payment_id = p.id
        and (r.state not in ('paid', 'marked', 'withdrawn') or r.updated_at >= before))
      and not exists (select from transfer t where t.payment_id = p.id and t.purpose = 'payment'
        and t.state not in ('confirmed', 'ended'))
      and not exists (select from attempt a where a.payment_id = p.id and (a.state = 'waiting' or a.created_at >= before))
      and (p.mode = 'test' or not exists (
        select from payment_option o left join chain_cursor c on c.chain = o.chain
        where o.payment_id = p.id and (c.chain_time > p.expires_at + interval '1 hour') is not true))
      -- An asset that is read again from an earlier block may still bring money for a quote. So may one that left the
      -- networks file before the deadline: it may be configured again, which is expected for 90 days.
      and not exists (
        select from payment_option o join asset_backfill b on b.chain = o.chain and b.asset = o.asset
        where o.payment_id = p.id and (b.until is not null
          or b.since < p.expires_at + interval '1 hour' and b.since > before - interval '90 days'))
  $$;

-- Removes the rows of one table that belong to these payments and may leave: those of payments at rest since `before`, and
-- never those of the last seven days by the clock of the database. Returns for each table the number of rows that have left,
-- and with `exported` the rows as lines of JSON, in which numbers have all their digits.
--
-- Workers call it, because they may not delete from these tables: they would then be able to delete, for example, the event
-- that says that a payout was sent.
create function remove_history(of_relation text, of_payments text[], before timestamptz, exported boolean)
  returns table (relation text, removed bigint, lines text) language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  #variable_conflict use_column
  declare
    oldest constant timestamptz := least(before, clock_timestamp() - interval '7 days');
    resting constant text[] := array(select payments_at_rest(of_payments, oldest));
    refunds constant text[] := array(select id from refund where payment_id = any(resting));
    -- The rows that leave, by the column that an index finds them by: an array keeps the plan from reading whole tables.
    leaving text[];
  begin
    case of_relation
    when 'attempt' then
      -- The events of an attempt leave with it: without its row, nothing leads from the payment to them.
      leaving := array(
        select a.id from attempt a where a.payment_id = any(resting)
          and not exists (select from collected_data d where d.attempt_id = a.id)
          and not exists (select from event e where e.subject = a.id and e.machine = 'attempt' and e.at >= oldest)
        for update);
      return query with gone as (
        delete from attempt a where a.id = any(leaving) returning a.*
      ) select 'attempt', count(*), case when exported then string_agg(to_jsonb(g)::text, e'\n' order by g.id) end from gone g;
      perform set_config('pay.removes_history', 'on', true);
      return query with gone as (
        delete from event e where e.subject = any(leaving) and e.machine = 'attempt' returning e.*
      ) select 'event', count(*), case when exported then string_agg(to_jsonb(g)::text, e'\n' order by g.id) end from gone g;
      perform set_config('pay.removes_history', 'off', true);
    when 'webhook_event' then
      -- No more than one statement can delete with their deliveries: a merchant can make any number of refunds of a payment and withdraw
      -- them, and a batch that times out would be repeated for ever. The payments of the others are checked again.
      -- A numbered event stays until the next one of the account's list is old too: a reader who had come to it by then has a
      -- cursor that names it. So the newest one stays.
      leaving := array(
        select v.id from webhook_event v
        where (v.payment_id = any(resting) or v.refund_id = any(refunds)) and v.at < oldest
          and not exists (select from webhook_delivery d where d.event_id = v.id and d.state = 'pending')
          and (v.position is null or (select n.at from webhook_event n where n.account_id = v.account_id and n.mode = v.mode
            and n.position > v.position order by n.position limit 1) < oldest)
        limit 5000 for update);
      return query with gone as (
        delete from webhook_attempt a where a.event_id = any(leaving) returning a.*
      ) select 'webhook_attempt', count(*), case when exported then
          string_agg(to_jsonb(g)::text, e'\n' order by g.event_id, g.endpoint_id, g.id) end from gone g;
      return query with gone as (
        delete from webhook_delivery d where d.event_id = any(leaving) and d.state <> 'pending' returning d.*
      ) select 'webhook_delivery', count(*), case when exported then
          string_agg(to_jsonb(g)::text, e'\n' order by g.event_id, g.endpoint_id) end from gone g;
      -- A delivery that was made pending meanwhile, by a replay, keeps its event.
      return query with gone as (
        delete from webhook_event v where v.id = any(leaving)
          and not exists (select from webhook_delivery d where d.event_id = v.id)
        returning v.*
      ) select 'webhook_event', count(*), case when exported then string_agg(to_jsonb(g)::text, e'\n' order by g.id) end from gone g;
    when 'event' then
      -- The events of payouts and refunds stay. The payload of a webhook event says when its payment moved.
      leaving := array(
        select id from unnest(resting) as p (id)
        where not exists (select from webhook_event v where v.payment_id = p.id)
          and not exists (select from refund r join webhook_event v on v.refund_id = r.id where r.payment_id = p.id));
      leaving := leaving || array(
        select t.id from transfer t where t.payment_id = any(leaving) and t.purpose = 'payment'
        union all
        select x.hash from transfer t join transaction x on x.lane_id = t.lane_id and x.nonce = t.lane_nonce
        where t.payment_id = any(leaving) and t.purpose = 'payment' and x.state in ('final', 'replaced', 'expired'));
      perform set_config('pay.removes_history', 'on', true);
      return query with gone as (
        delete from event e where e.subject = any(leaving) and e.machine in ('payment', 'transfer', 'transaction')
          and e.at < oldest
        returning e.*
      ) select 'event', count(*), case when exported then string_agg(to_jsonb(g)::text, e'\n' order by g.id) end from gone g;
      perform set_config('pay.removes_history', 'off', true);
    when 'payment_option' then
      -- The quote that paid stays, and a quote whose money came without paying: an exception then names its payment.
      leaving := array(
        select o.id from payment_option o join payment p on p.id = o.payment_id
        where o.payment_id = any(resting) and p.option_id is distinct from o.id and o.created_at < oldest
          and not exists (select from attempt a where a.payment_id = o.payment_id and a.option_id = o.id)
          and not exists (select from observation s where s.authorization_nonce = o.authorization_nonce and s.transfer_id is null)
          -- An open exception of the payer names the payment of their newest quote (db/queries/exceptions.ts).
          and not exists (
            select from observation s join ledger_group g on g.kind = 'unmatched' and g.subject in (
              s.chain || '/' || s.block_id || '/' || s.log_index, s.chain || '/' || s.tx_hash || '/' || s.log_index)
            where s.payer = o.payer and s.transfer_id is null and s.dust_id is null
              and not exists (select from ledger_group r where r.kind = 'exception_resolved' and r.subject = g.id::text)));
      return query with gone as (
        delete from payment_option o where o.id = any(leaving) returning o.*
      ) select 'payment_option', count(*), case when exported then string_agg(to_jsonb(g)::text, e'\n' order by g.id) end
        from gone g;
    end case;
  end $$;
