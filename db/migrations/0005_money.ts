import { type Kysely, sql } from "kysely";

/** The whole of money: gas in the books, balances by day, refunds that move, fees, prices, statements. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // What a transaction cost its lane in all, the smallest unit of the native asset: a rollup adds its L1 fee
  "alter table transaction add column fee numeric(78,0) check (fee >= 0)",
  "update transaction set fee = gas_used * gas_price where gas_used is not null",

  // Balances by account and date without adding up what was ever booked. Accounts that everybody books on have several
  // slots, so that those who book at the same moment do not wait for each other's row. What a merchant is owed is booked
  // by one at a time anyway, who holds its balance, and a lane is booked by its chain's watcher.
  `create table ledger_day (
    account text not null,
    asset text not null,
    day date not null,
    slot smallint not null,
    amount numeric(78,0) not null,
    primary key (account, asset, day, slot) include (amount)
  )`,
  `create function ledger_day_of(at timestamptz) returns date language sql immutable
    return (at at time zone 'UTC')::date`,
  `insert into ledger_day (account, asset, day, slot, amount)
    select e.account, e.asset, ledger_day_of(g.at), 0, sum(e.amount)
    from ledger_entry e join ledger_group g on g.id = e.group_id group by e.account, e.asset, ledger_day_of(g.at)`,
  `create function add_to_ledger_day() returns trigger language plpgsql as $$
  begin
    insert into ledger_day as d (account, asset, day, slot, amount)
    select e.account, e.asset, ledger_day_of(g.at),
      case when e.account ~ '^(payable|lane):' then 0 else pg_backend_pid() % 16 end, sum(e.amount)
    from booked e join ledger_group g on g.id = e.group_id
    group by e.account, e.asset, ledger_day_of(g.at)
    order by 1, 2, 3
    on conflict (account, asset, day, slot) do update set amount = d.amount + excluded.amount;
    return null;
  end $$`,
  `create trigger ledger_entry_day after insert on ledger_entry referencing new table as booked
    for each statement execute function add_to_ledger_day()`,
  // Nobody but that trigger writes there.
  `create trigger ledger_day_by_entries before insert or update or delete or truncate on ledger_day
    for each statement when (pg_trigger_depth() = 0) execute function refuse_change()`,
  "create index ledger_group_block on ledger_group (chain, block_number) where block_number is not null",

  // The gas of what was final before
  `insert into ledger_group (kind, subject, chain, block_number, block_hash, tx_hash, at)
    select 'gas', chain || '/' || hash, chain, block_number, block_hash, hash, now()
    from transaction where state = 'final' and fee > 0`,
  `insert into ledger_entry (group_id, account, asset, amount)
    select g.id, side.account, t.chain || '/slip44:60', side.sign * t.fee
    from transaction t join lane l on l.id = t.lane_id
    join ledger_group g on g.kind = 'gas' and g.subject = t.chain || '/' || t.hash
    cross join lateral (values ('gas_spent', 1), ('lane:' || l.address, -1)) as side (account, sign)
    where t.state = 'final' and t.fee > 0`,

  // Refunds that move money: of a payment, several when they are partial, or of money that belongs to nobody. Those from
  // before were marks, whose money others have sent.
  "alter table refund drop constraint refund_payment_id_key",
  `alter table refund
    alter column payment_id drop not null,
    add column number integer not null default 1,
    add column exception_id bigint unique references ledger_group,
    add column merchant_id text references merchant,
    add column asset text,
    add column amount numeric(78,0) check (amount > 0),
    add column receiver text,
    add column state text not null default 'marked',
    add column paid_at timestamptz,
    add column due_at timestamptz,
    add column due_try integer not null default 0,
    add unique (payment_id, number),
    add check ((payment_id is null) <> (exception_id is null)),
    add check ((payment_id is null) = (merchant_id is null))`,
  `update refund r set merchant_id = p.merchant_id, asset = p.paid_asset, amount = p.paid_amount,
    receiver = (select o.payer from payment_option o where o.id = p.option_id) from payment p where p.id = r.payment_id`,
  "alter table refund alter column state drop default, alter column number drop default, alter column asset set not null, alter column amount set not null",
  "create index refund_due on refund (due_at) where due_at is not null",
  "create index refund_waiting on refund (merchant_id, asset) where state = 'due'",
  `create trigger refund_birth after insert on refund for each row execute function record_birth()`,
  `alter table transfer
    add column refund_id text references refund,
    add check ((purpose = 'refund') = (refund_id is not null))`,
  "create unique index transfer_refund on transfer (refund_id) where purpose = 'refund'",
  // A refund takes what is owed out of settlements that have not begun; one that it has taken whole is netted.
  `alter table settlement drop constraint settlement_amount_check,
    add check (amount > 0 or amount = 0 and state = 'netted')`,
  "create index settlement_unbegun on settlement (merchant_id, asset) where state in ('due', 'gathering')",

  // Money that belongs to nobody until somebody says whose it is, and what an operator says of a booking by hand
  "alter table ledger_group add column note text",
  "create index ledger_group_exception on ledger_group (id) where kind in ('stray', 'exception')",
  "create index payment_option_payer on payment_option (payer, created_at)",

  // What the newest comparison of the books with a chain came to, and when the next one is due
  `create table reconciliation (
    chain text not null,
    account text not null,
    asset text not null,
    block_number bigint not null,
    booked numeric(78,0) not null,
    in_flight numeric(78,0) not null,
    held numeric(78,0) not null,
    at timestamptz not null,
    primary key (chain, account, asset)
  )`,
  "alter table chain_cursor add column reconcile_at timestamptz not null default now()",

  // Payouts only from an amount on, and none to a merchant that an operator holds
  `alter table settlement_destination
    add column minimum numeric(78,0) check (minimum > 0),
    add check (minimum is null or gather_ms is not null)`,
  "alter table merchant add column payouts_held_at timestamptz",
  // Since when a settlement waits for its payout: one that gathers does not
  "alter table settlement add column closed_at timestamptz",
  "update settlement set closed_at = created_at where state <> 'gathering'",

  // Where merchants were paid before: by a trigger, because no change may be forgotten
  `create table destination_change (
    id bigint generated always as identity primary key,
    merchant_id text not null,
    destination_id text not null,
    asset text not null,
    before text,
    after text,
    at timestamptz not null
  )`,
  "create index destination_change_merchant on destination_change (merchant_id, id)",
  `create function record_destination() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' then
      insert into destination_change (merchant_id, destination_id, asset, before, at)
      values (old.merchant_id, old.id, old.asset, old.destination, clock_timestamp());
    elsif tg_op = 'INSERT' then
      insert into destination_change (merchant_id, destination_id, asset, after, at)
      values (new.merchant_id, new.id, new.asset, new.destination, new.created_at);
    elsif old.destination <> new.destination then
      insert into destination_change (merchant_id, destination_id, asset, before, after, at)
      values (new.merchant_id, new.id, new.asset, old.destination, new.destination, new.updated_at);
    end if;
    return null;
  end $$`,
  `insert into destination_change (merchant_id, destination_id, asset, after, at)
    select merchant_id, id, asset, destination, updated_at from settlement_destination order by updated_at, id`,
  `create trigger settlement_destination_change after insert or update or delete on settlement_destination
    for each row execute function record_destination()`,
  `create trigger destination_change_append_only before update or delete or truncate on destination_change
    for each statement execute function refuse_change()`,

  // What the operator takes: of an account, or of one merchant instead. Fixed with the option that a buyer is shown.
  `create table fee_policy (
    account_id text not null references account,
    merchant_id text references merchant,
    points integer not null check (points between 0 and 10000),
    fixed_micros numeric(78,0) not null check (fixed_micros >= 0),
    updated_at timestamptz not null,
    unique nulls not distinct (account_id, merchant_id)
  )`,
  `alter table payment_option
    add column fee numeric(78,0) not null default 0 check (fee >= 0 and (fee = 0 or fee < amount)),
    add column fee_fixed numeric(78,0) not null default 0 check (fee_fixed between 0 and fee),
    add column fee_points integer not null default 0`,
  "alter table payment add column fee numeric(78,0) not null default 0",

  // Buyers who pay a merchant's destination themselves: nothing of it is ever ours
  "alter table settlement_destination add column direct boolean not null default false",
  "alter table payment_option add column direct boolean not null default false",
  "alter table payment add column direct boolean not null default false",
  "alter table settlement add column tx_hash text",

  // What an option's amount was reckoned by, and until when it holds; null where the asset is of the payment's currency
  `alter table payment_option
    add column rate text,
    add column quoted_until timestamptz,
    add check ((rate is null) = (quoted_until is null))`,

  // Payments in other assets of the same currency than the merchant's, which are owed in the merchant's
  "alter table settlement_destination add column takes_others boolean not null default false",
  `alter table payment_option
    add column owed_asset text,
    add column owed_amount numeric(78,0) check (owed_amount > 0),
    add check ((owed_asset is null) = (owed_amount is null))`,
  "alter table payment add column owed_asset text, add column owed_amount numeric(78,0)",
  "alter table settlement add column converted boolean not null default false",
  "create index settlement_converted on settlement (asset) where converted and state in ('due', 'gathering')",
  "create index merchant_balance_asset on merchant_balance (asset) include (amount)",
  "alter table refund add column owed_asset text, add column owed_amount numeric(78,0)",
  "drop index refund_waiting",
  "create index refund_waiting on refund (merchant_id) where state = 'due'",
];
