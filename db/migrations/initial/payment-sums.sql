-- The sums that lists of payments return. A payment that has ended never changes what it adds to them. Each payment is
-- therefore in exactly one of three places, in every snapshot: it is open, or in `ended_payment`, or part of the sums.

-- Payments that have ended and are not in the sums yet. A trigger inserts the row in the statement that ends a payment, so no
-- login can insert another one.
create table ended_payment (
  account_id text not null,
  mode text not null,
  payment_id text not null,
  primary key (account_id, mode, payment_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

create function add_ended_payment() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into ended_payment (account_id, mode, payment_id) values (new.account_id, new.mode, new.id);
    return null;
  end $$;
create trigger payment_end after update of state on payment for each row
  when (old.state <> new.state and new.state in ('succeeded', 'failed', 'expired', 'cancelled'))
  execute function add_ended_payment();

-- Whose payments have been summed: those of a merchant, and those of all merchants of an account (`merchant_id` is empty). The
-- worker that sums those of an account locks the row of the account. Sums refer to these rows by number, which is short.
create table summed_owner (
  id integer generated always as identity primary key,
  account_id text not null references account,
  mode text not null,
  merchant_id text not null,
  -- Of an account: the rows of `customer`, of which the next one gets this number.
  customers integer not null default 0,
  -- Of an account: the sets of its merchants' customers have the days before this one.
  sets_before date not null default '-infinity',
  unique (account_id, mode, merchant_id)
);

-- What an account's payments are added up by. The asset is empty when no buyer has begun to pay.
create table summed_kind (
  id integer generated always as identity primary key,
  owner integer not null references summed_owner,
  state text not null,
  asset text not null,
  unit text not null,
  unique (owner, state, asset, unit)
);

-- Payments that have ended, by the UTC day, month and year of their creation.
create table payment_sum (
  owner integer not null,
  span text not null check (span in ('day', 'month', 'year')),
  starts_on date not null,
  kind integer not null,
  count bigint not null,
  -- Without a limit: the amounts of two payments may have more digits than a column of amounts.
  value numeric not null,
  primary key (owner, span, starts_on, kind)
);

-- Up to 100 payments of a merchant and day that were added to the sums together, each as one place of every array. Lists read them
-- where sums do not suffice: for times that end inside of a day, references, and the customers of a merchant's days.
create table summed_payment (
  owner integer not null,
  day date not null,
  number bigint generated always as identity,
  kinds integer[] not null,
  times timestamptz[] not null,
  amounts numeric[] not null,
  -- The numbers of the payers of succeeded payments, otherwise null.
  customers integer[] not null,
  -- The references in lower case, each on its line; null when no payment has one.
  texts text,
  primary key (owner, day, number)
) with (toast_tuple_target = 8160);
alter table summed_payment alter column texts set storage external;

-- Finds references by a part of them. Rows are never updated, so each reference is indexed once. The extension may have been
-- created before, in a schema of its own.
do $$ begin
  create extension if not exists pg_trgm;
exception when insufficient_privilege then
  raise exception 'the role of DATABASE_URL may not create the extension pg_trgm; as an administrator run: create extension pg_trgm'
    using errcode = 'insufficient_privilege', detail = sqlerrm;
end $$;
do $$ begin
  execute format('create index summed_payment_texts on summed_payment using gin (texts %s.gin_trgm_ops)',
    (select extnamespace::regnamespace from pg_extension where extname = 'pg_trgm'));
end $$;

-- The payers of succeeded payments of an account, numbered from 0.
create table customer (
  owner integer not null,
  payer text not null,
  number integer not null,
  primary key (owner, payer)
);

-- The customers of a day, month or year, of which one bit stands for each. The bits of a chunk begin with the customer
-- `chunk * 32768`. A row holds few ones or many, so it is compressed in place. Accounts have sets of days and months. Merchants
-- have sets of months and years, of the days before `sets_before` and the months before its month: each set of
-- a merchant changes once a day, not with each payment.
create table customer_set (
  owner integer not null,
  span text not null check (span in ('day', 'month', 'year')),
  starts_on date not null,
  -- Empty: all assets.
  asset text not null,
  chunk integer not null,
  bits bit(32768) not null,
  primary key (owner, span, starts_on, asset, chunk)
) with (toast_tuple_target = 128);
alter table customer_set alter column bits set storage main;
