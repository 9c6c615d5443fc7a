-- Payments, their options (quotes), the buyers' attempts, and the data that buyers give.

create table payment (
  id text primary key,
  account_id text not null references account,
  merchant_id text not null references merchant,
  mode text not null check (mode in ('test', 'live')),
  reference_id text,
  description text,
  -- The merchant's own values by their own names, which are texts.
  metadata jsonb check (jsonb_typeof(metadata) = 'object'),
  unit text not null,
  value numeric(78,0) not null check (value > 0),
  state text not null,
  state_version integer not null default 0,
  failure_code text check (failure_code is null or state = 'failed'),
  cancelled_reason text check (cancelled_reason is null or state = 'cancelled'),
  checkout jsonb,
  -- The option that the buyer pays by, and its asset. A simulated payment has an asset only.
  option_id text,
  asset text,
  tx_id text,
  -- The buyer or another relayer has sent the transaction `tx_id`, not one of our lanes.
  sent_by_others boolean not null default false,
  paid_asset text,
  paid_amount numeric(78,0),
  fee numeric(78,0) not null default 0,
  direct boolean not null default false,
  owed_asset text,
  owed_amount numeric(78,0),
  settlement_id text references settlement,
  requester text,
  has_other_requesters boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz not null,
  due_at timestamptz,
  due_retries integer not null default 0,
  check (state <> 'succeeded' or (tx_id is not null and paid_asset is not null and paid_amount is not null)),
  check (requester is not null or not has_other_requesters)
);
-- Lists merge the payments of each state and asset, newest first (db/queries/payment-filters.ts). The id is left out to
-- save WAL: few payments have the same time.
create index payment_account on payment (account_id, mode, state, coalesce(asset, ''), created_at desc);
create index payment_merchant on payment (merchant_id, state, coalesce(asset, ''), created_at desc);
create index payment_amount on payment (account_id, mode, value, id);
create index payment_metadata on payment using gin (metadata jsonb_path_ops) where metadata is not null;
create index payment_reference on payment (reference_id) where reference_id is not null;
create index payment_sent_by_others on payment (tx_id) where sent_by_others;
create index payment_settlement on payment (settlement_id, id) where settlement_id is not null;
create index payment_due on payment (due_at) where due_at is not null;
create index payment_due_merchant on payment (merchant_id, due_at) where due_at is not null;
create trigger payment_known_moves before update of state on payment for each row
  when (old.state <> new.state and (old.state, new.state) not in (
    ('requires_action', 'processing'), ('requires_action', 'expired'), ('requires_action', 'cancelled'),
    ('processing', 'succeeded'), ('processing', 'failed'), ('processing', 'expired')))
  execute function reject_unknown_move();
create trigger payment_insert_events after insert on payment referencing new table as added
  for each statement execute function record_insert_events();

-- The hour of a quote, counted from 1970.
create function option_hour(at timestamptz) returns integer language sql immutable parallel safe
  return floor(extract(epoch from at) / 3600)::integer;

-- One row per quote. A renewed quote is a new row with the next number of its payment, payer and asset.
create table payment_option (
  id text primary key,
  payment_id text not null references payment,
  number integer not null default 1 check (number > 0),
  kind text not null default 'eip3009' check (kind in ('eip3009', 'permit2', 'push', 'spl')),
  account text not null,
  chain text not null,
  asset text not null,
  token text not null,
  payer text not null,
  receiver text not null,
  amount numeric(78,0) not null check (amount > 0),
  authorization_nonce text not null,
  -- EVM: when the authorization expires, Unix seconds.
  valid_before bigint,
  blockhash_until timestamptz,
  allowance jsonb,
  needs_data boolean not null default false,
  fee numeric(78,0) not null default 0 check (fee >= 0 and (fee = 0 or fee < amount)),
  fee_fixed numeric(78,0) not null default 0 check (fee_fixed between 0 and fee),
  fee_basis_points integer not null default 0,
  direct boolean not null default false,
  rate text,
  quoted_until timestamptz,
  owed_asset text,
  owed_amount numeric(78,0) check (owed_amount > 0),
  created_at timestamptz not null,
  unique (payment_id, id),
  unique (payment_id, payer, asset, number),
  check ((kind = 'spl') = (valid_before is null)),
  check ((rate is null) = (quoted_until is null)),
  check ((owed_asset is null) = (owed_amount is null))
);
create index payment_option_authorization on payment_option (authorization_nonce);
-- By the hour first, so that new entries are near each other: payers are addresses, which are anywhere in an index.
create index payment_option_payer on payment_option (option_hour(created_at), right(payer, 8));
-- Payers of options that buyers may pay directly, without our transaction.
create index payment_option_direct on payment_option (payer) where direct;
-- Renewed quotes, which are deleted once nothing can refer to them.
create index payment_option_renewal on payment_option (created_at) where number > 1;

create function reject_quote_change() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  begin
    if to_jsonb(new) - 'blockhash_until' is distinct from to_jsonb(old) - 'blockhash_until' then
      raise exception 'a quote never changes: %', old.id;
    end if;
    return new;
  end $$;
create trigger payment_option_immutable before update on payment_option for each row execute function reject_quote_change();

-- A payment and its attempts refer to a quote of the same payment. Deleting a quote checks these references by payment,
-- so they need no index of their own.
alter table payment add foreign key (id, option_id) references payment_option (payment_id, id);

create table attempt (
  id text primary key,
  payment_id text not null references payment,
  option_id text not null,
  -- The chain of the option and the merchant of the payment, by which the sweep divides due attempts fairly.
  chain text not null,
  merchant_id text not null,
  digest bytea not null,
  results jsonb not null,
  -- The span of the confirm's request, where its trace is sampled: later steps continue the trace.
  traceparent text,
  verification text not null default 'key' check (verification in ('key', 'wallet', 'push')),
  state text not null,
  refusal text,
  created_at timestamptz not null,
  due_at timestamptz,
  due_retries integer not null default 0,
  unique (payment_id, digest),
  foreign key (payment_id, option_id) references payment_option (payment_id, id)
);
create unique index attempt_one_verified on attempt (payment_id) where state = 'verified';
create index attempt_due on attempt (due_at) where due_at is not null;
create index attempt_due_by_merchant on attempt (chain, merchant_id, due_at) where due_at is not null;
create index attempt_refused on attempt (created_at) where state = 'refused';
create trigger attempt_known_moves before update of state on attempt for each row
  when (old.state <> new.state and (old.state, new.state) not in (
    ('waiting', 'verified'), ('waiting', 'refused'), ('refused', 'waiting'), ('verified', 'refused')))
  execute function reject_unknown_move();
create trigger attempt_insert_events after insert on attempt referencing new table as added
  for each statement execute function record_insert_events();

-- Encrypted personal data of a buyer. A requester of options posts it before the confirm (`attempt_id` is null), or an
-- attempt carries it. A push attempt proves nothing about its sender, because its transaction hash is public: the data of
-- each requester is kept separately there.
create table collected_data (
  id text primary key,
  payment_id text not null references payment,
  account text not null,
  requester text not null,
  attempt_id text references attempt on delete cascade,
  key_id text not null,
  ciphertext bytea not null,
  created_at timestamptz not null,
  delete_at timestamptz not null,
  keep_until timestamptz not null,
  check (keep_until >= delete_at)
);
create unique index collected_data_posted on collected_data (payment_id, account, requester) where attempt_id is null;
create unique index collected_data_attempt on collected_data (attempt_id, requester) where attempt_id is not null;
create index collected_data_payment on collected_data (payment_id);
create index collected_data_account on collected_data (account);
create index collected_data_delete on collected_data (delete_at);

-- Records what a simulated buyer has paid. The api calls it for payments of test mode; of live payments it cannot write
-- these columns, without which no payment succeeds.
create function record_simulated_payment(of_payment text, with_tx text, with_asset text, with_amount numeric)
  returns setof text language sql
  security definer set search_path = pg_catalog, public, pg_temp as $$
    update payment set tx_id = with_tx, asset = with_asset, paid_asset = with_asset, paid_amount = with_amount
    where id = of_payment and mode = 'test' and state = 'processing' returning id
  $$;
