-- Refunds: of a payment (several, when they are partial), or of money that the ledger holds as an exception.

create table refund (
  id text primary key,
  payment_id text references payment,
  number integer not null,
  exception_id bigint unique references ledger_group,
  account_id text references account,
  mode text check (mode in ('test', 'live')),
  merchant_id text references merchant,
  asset text not null,
  amount numeric(78,0) not null check (amount > 0),
  owed_asset text,
  owed_amount numeric(78,0) check (owed_amount > 0),
  receiver text,
  state text not null,
  held_reason text check (held_reason in ('screening', 'receiver_blocked')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  tx_hash text,
  paid_at timestamptz,
  due_at timestamptz,
  due_retries integer not null default 0,
  unique (payment_id, number),
  check ((payment_id is null) <> (exception_id is null)),
  check (num_nulls(payment_id, merchant_id, account_id, mode) in (0, 4))
);
create index refund_queue on refund
  (coalesce(merchant_id, ''), coalesce(owed_asset, asset), split_part(asset, '/', 1), due_retries, due_at)
  where due_at is not null;
create index refund_waiting on refund (merchant_id) where state = 'due';
create index refund_account on refund (account_id, mode, created_at desc, id desc);
create index refund_merchant on refund (merchant_id, created_at desc, id desc);
create index refund_unpaid on refund (id) where state in ('due', 'held', 'paying');

-- Completes a refund of a payment: it goes back to the payer, in what was paid. If the merchant's balance is in another
-- asset, the refund draws from it the refunded share of what was credited for the payment, including its fee, rounded up.
-- The api, which may not write these columns (db/grants.ts), therefore chooses neither the receiver nor who pays. Nor does it
-- choose the state: a refund that is only recorded counts as paid.
create function set_refund_place() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  declare
    begins_as text;
  begin
    select p.account_id, p.mode, coalesce(new.merchant_id, p.merchant_id), coalesce(new.asset, p.paid_asset), coalesce(new.receiver, o.payer),
      coalesce(new.owed_asset, p.owed_asset),
      coalesce(new.owed_amount, div(p.owed_amount * new.amount + p.paid_amount - p.fee - 1, p.paid_amount - p.fee)),
      case when p.mode = 'live' and not p.direct and o.id is not null then 'due' else 'marked' end
    into new.account_id, new.mode, new.merchant_id, new.asset, new.receiver, new.owed_asset, new.owed_amount, begins_as
    from payment p left join payment_option o on o.id = p.option_id and o.payment_id = p.id where p.id = new.payment_id;
    if new.state <> begins_as then
      raise exception 'a refund of % begins as %', new.payment_id, begins_as;
    end if;
    return new;
  end $$;
create trigger refund_place before insert on refund for each row
  when (new.payment_id is not null) execute function set_refund_place();
create trigger refund_known_moves before update of state on refund for each row
  when (old.state <> new.state and (old.state, new.state) not in (
    ('due', 'paying'), ('due', 'held'), ('due', 'withdrawn'), ('held', 'withdrawn'), ('paying', 'paid')))
  execute function reject_unknown_move();
create trigger refund_insert_events after insert on refund referencing new table as added
  for each statement execute function record_insert_events();

-- What a refund deducted from a payment's share of a settlement before the settlement was paid out.
create table settlement_deduction (
  refund_id text not null references refund,
  settlement_id text not null references settlement,
  payment_id text not null references payment,
  amount numeric(78,0) not null check (amount > 0),
  primary key (refund_id, settlement_id, payment_id)
);
create index settlement_deduction_payment on settlement_deduction (payment_id);

-- Withdraws a refund of a payment that has not begun. The api calls it, because it may not write the states of refunds: one that it
-- marked as paid would be reported to the merchant and never sent. It withdraws no return of an exception, whose money must be booked
-- as an exception again.
create function withdraw_refund(of_refund text, withdrawn_at timestamptz) returns void language sql
  security definer set search_path = pg_catalog, public, pg_temp as $$
    with former as (
      select id, state from refund where id = of_refund and payment_id is not null and state in ('due', 'held') for update
    ), withdrawn as (
      update refund r set state = 'withdrawn', updated_at = withdrawn_at, due_at = null from former f where r.id = f.id
    )
    insert into event (machine, subject, from_state, to_state, at)
    select 'refund', id, state, 'withdrawn', withdrawn_at from former
  $$;
