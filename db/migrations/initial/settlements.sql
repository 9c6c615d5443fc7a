-- Settlements: payouts of what merchants are owed.

create table settlement (
  id text primary key,
  merchant_id text not null references merchant,
  mode text not null check (mode in ('test', 'live')),
  asset text not null,
  number integer not null,
  amount numeric(78,0) not null,
  destination text,
  state text not null,
  converted boolean not null default false,
  tx_hash text,
  created_at timestamptz not null,
  closed_at timestamptz,
  paid_at timestamptz,
  due_at timestamptz,
  due_retries integer not null default 0,
  unique (merchant_id, asset, number),
  check (amount > 0 or amount = 0 and state = 'netted')
);
create unique index settlement_accumulating on settlement (merchant_id, asset, converted) where state = 'accumulating';
create index settlement_queue on settlement (merchant_id, asset, due_retries, due_at) where due_at is not null;
create index settlement_waiting on settlement (merchant_id, asset, coalesce(closed_at, created_at)) where state = 'due';
create index settlement_not_begun on settlement (merchant_id, asset, converted, number) where state in ('due', 'accumulating');
create index settlement_paying on settlement (created_at) where state = 'paying';
create index settlement_in_transit on settlement (merchant_id, asset) where state = 'paying';
create index settlement_paid on settlement (paid_at) where state = 'paid';
create index settlement_converted on settlement (asset, merchant_id) where converted and state in ('due', 'accumulating');
create trigger settlement_insert_events after insert on settlement referencing new table as added
  for each statement execute function record_insert_events();
