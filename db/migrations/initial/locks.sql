-- A lock is a row, held until the transaction ends. Any login may take advisory locks, also one that only reads, and could keep
-- others waiting with them. No role may lock these rows: functions do so for the roles that may call them.
create table named_lock (
  name text primary key
);
insert into named_lock (name) values ('audit chain'), ('destination reports');

-- Locks a row, which it inserts first when it is missing. Only functions call it.
create function lock_name(wanted text) returns void language plpgsql set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into named_lock (name) values (wanted) on conflict do nothing;
    perform from named_lock where name = wanted for update;
  end $$;

create function lock_inventory(asset text) returns void language sql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  select lock_name('inventory ' || asset)
  $$;

create function lock_reconciliation(chain text) returns void language sql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  select lock_name('reconciliation ' || chain)
  $$;

create function lock_logins() returns void language sql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  select lock_name('logins')
  $$;

-- The locks of payers. A payer has the row of its hash, so the table does not grow with the payers. With this many rows, two
-- batches of 30 payers that are accepted at the same time rarely share one (docs/performance.md).
create table payer_lock (
  number integer primary key
);
insert into payer_lock (number) select generate_series(0, 16383);

-- Locks payers in the order of their rows, which avoids deadlocks.
create function lock_payers(payers text[]) returns void language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  declare
    wanted constant integer[] := array(select distinct hashtextextended(payer, 0) & 16383 from unnest(payers) as payer);
    locked integer;
  begin
    perform from payer_lock where number = any(wanted) order by number for update;
    get diagnostics locked = row_count;
    if locked < cardinality(wanted) then
      raise exception 'the table payer_lock lacks rows';
    end if;
  end $$;
