-- The ledger: double entry and append only.

create table ledger_group (
  id bigint generated always as identity primary key,
  kind text not null,
  subject text not null,
  chain text,
  block_number bigint,
  block_id text,
  tx_hash text,
  log_index integer,
  note text,
  at timestamptz not null,
  -- The subject comes first, so that the index also serves searches by the subject alone.
  unique (subject, kind)
);
create index ledger_group_at on ledger_group (at);
create index ledger_group_block on ledger_group (chain, block_number) where block_number is not null;
create index ledger_group_resolution on ledger_group (id) where kind = 'exception_resolved';
create index ledger_group_exception on ledger_group (id) where kind in ('unmatched', 'exception', 'overpaid', 'dust');

create table ledger_entry (
  id bigint generated always as identity,
  group_id bigint not null references ledger_group,
  account text not null,
  asset text not null,
  amount numeric(78,0) not null check (amount <> 0),
  -- One index finds the entries of a group, and no entry is found by its number alone.
  primary key (group_id, id)
);
-- Statements of what merchants are owed, and corrections. Every payment books on other accounts too, of which no row is read
-- by its account.
create index ledger_entry_account on ledger_entry (account, asset, id)
  where account like 'payable:%' or account = 'exceptions';
-- Outflows from the treasury that no transfer explains; the inventory of an asset subtracts them.
create index ledger_entry_unexplained_outflow on ledger_entry (asset) where account = 'exceptions' and amount > 0;

create trigger ledger_group_append_only before update or delete or truncate on ledger_group
  for each statement execute function reject_change();
create trigger ledger_entry_append_only before update or delete or truncate on ledger_entry
  for each statement execute function reject_change();

-- Locks an exception until the transaction ends. No process may lock rows of the ledger, because that takes the privilege to
-- change them.
create function lock_exception(exception bigint) returns void language sql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  select from ledger_group where id = exception for no key update
  $$;

-- A statement inserts all entries of a group.
create function check_ledger_group_balance() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  declare
    unbalanced bigint;
  begin
    select group_id into unbalanced from booked group by group_id, asset having sum(amount) <> 0 limit 1;
    if found then
      raise exception 'ledger group % does not sum to zero', unbalanced;
    end if;
    return null;
  end $$;
create trigger ledger_entry_balanced after insert on ledger_entry referencing new table as booked
  for each statement execute function check_ledger_group_balance();

-- Sums by account, asset and UTC day, so that a balance does not add up every entry ever made. A trigger on
-- `ledger_entry` maintains them.
--
-- An account that many transactions book on has 16 shards per day: concurrent transactions then rarely wait for each
-- other's row. `payable:` and `lane:` accounts need one shard, because their writers are already serialized (by the
-- merchant's balance row and by the chain's watcher).
create table ledger_day (
  account text not null,
  asset text not null,
  day date not null,
  shard smallint not null,
  amount numeric(78,0) not null,
  primary key (account, asset, day, shard) include (amount)
);

create function ledger_day_of(at timestamptz) returns date language sql immutable
  return (at at time zone 'UTC')::date;

create function add_to_ledger_day() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into ledger_day as d (account, asset, day, shard, amount)
    select e.account, e.asset, ledger_day_of(g.at),
      case when e.account ~ '^(payable|lane):' then 0 else pg_backend_pid() % 16 end, sum(e.amount)
    from booked e join ledger_group g on g.id = e.group_id
    group by e.account, e.asset, ledger_day_of(g.at)
    order by 1, 2, 3
    on conflict (account, asset, day, shard) do update set amount = d.amount + excluded.amount;
    return null;
  end $$;
create trigger ledger_entry_day after insert on ledger_entry referencing new table as booked
  for each statement execute function add_to_ledger_day();
-- Only the trigger above may write to `ledger_day`.
create trigger ledger_day_written_by_trigger before insert or update or delete or truncate on ledger_day
  for each statement when (pg_trigger_depth() = 0) execute function reject_change();

-- What each merchant is owed, as one row that payouts and refunds lock.
create table merchant_balance (
  merchant_id text not null references merchant,
  asset text not null,
  amount numeric(78,0) not null check (amount >= 0),
  next_settlement integer not null default 1,
  primary key (merchant_id, asset)
);
-- Without the amount, so that a changed amount writes no index entry.
create index merchant_balance_asset on merchant_balance (asset);

-- The newest comparison of the ledger with a chain.
create table reconciliation (
  chain text not null,
  account text not null,
  asset text not null,
  block_number bigint not null,
  booked numeric(78,0) not null,
  in_flight numeric(78,0) not null,
  held numeric(78,0) not null,
  at timestamptz not null,
  primary key (chain, account, asset)
);

-- The check whether the rows of the database agree with each other, and what the newest one has found.
create table ledger_check (
  singleton boolean primary key default true check (singleton),
  due_at timestamptz not null,
  checked_at timestamptz not null default now()
);
insert into ledger_check (due_at) values (now());

create table ledger_finding (
  kind text not null,
  subject text not null,
  asset text not null,
  found text,
  expected text,
  at timestamptz not null,
  primary key (kind, subject, asset)
);
