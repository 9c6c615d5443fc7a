-- The sums that lists of payments return. A payment that has ended never changes what it adds to them. Each payment is
-- therefore in exactly one of three places, in every snapshot: it is open, or in `ended_payment`, or part of the sums.

-- Payments that have ended and are not in the sums yet. The statement that ends a payment inserts its row.
create table ended_payment (
  account_id text not null,
  mode text not null,
  payment_id text not null,
  primary key (account_id, mode, payment_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- The accounts whose payments have been summed. The worker that sums those of an account locks its row.
create table summed_account (
  account_id text not null references account,
  mode text not null,
  -- The rows of `customer`, of which the next one gets this number.
  customers integer not null default 0,
  primary key (account_id, mode)
);

-- Payments that have ended, by the UTC day and month of their creation.
create table payment_sum (
  account_id text not null references account,
  mode text not null,
  -- Empty: all merchants of the account.
  merchant_id text not null,
  span text not null check (span in ('day', 'month')),
  starts_on date not null,
  state text not null,
  -- Empty when no buyer has begun to pay.
  asset text not null,
  unit text not null,
  count bigint not null,
  -- Without a limit: the amounts of two payments may have more digits than a column of amounts.
  value numeric not null,
  primary key (account_id, mode, merchant_id, span, starts_on, state, asset, unit)
);

-- The payers of succeeded payments of an account, numbered from 0.
create table customer (
  account_id text not null references account,
  mode text not null,
  payer text not null,
  number integer not null,
  primary key (account_id, mode, payer)
);

-- The customers of a day or month, of which one bit stands for each. The bits of a chunk begin with the customer
-- `chunk * 32768`. A row holds few ones or many, so it is compressed in place.
create table customer_set (
  account_id text not null references account,
  mode text not null,
  merchant_id text not null,
  span text not null check (span in ('day', 'month')),
  starts_on date not null,
  -- Empty: all assets. Merchants have sets by asset only, because a set of few customers costs a row for each of them.
  asset text not null,
  chunk integer not null,
  bits bit(32768) not null,
  primary key (account_id, mode, merchant_id, span, starts_on, asset, chunk)
) with (toast_tuple_target = 128);
alter table customer_set alter column bits set storage main;
