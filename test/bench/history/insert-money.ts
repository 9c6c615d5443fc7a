import type { Insert } from "./insert-payments.ts";

/** Fills the tables of merchants and of their money. */
export const insertMoneyStatements: Insert[] = [
  [
    "account",
    `insert into account (id, name, created_at)
     select distinct account_id, 'Account ' || account, now() - interval '2 years' from history.merchant`,
  ],
  [
    "merchant",
    `insert into merchant (id, account_id, mode, name, email, created_at)
     select id, account_id, 'live', 'Merchant ' || m, 'merchant' || m || '@example.test', created_at from history.merchant`,
  ],
  [
    "settlement_destination",
    `insert into settlement_destination (id, merchant_id, asset, destination, accumulation_ms, created_at, updated_at)
     select history.make_id('crypto', m.id || a.asset, m.created_at), m.id, a.asset,
       a.chain || ':' || history.make_address(a.chain, 'destination' || m.id), 86400000, m.created_at, m.created_at
     from history.merchant m cross join history.asset a`,
  ],
  [
    "settlement",
    `insert into settlement (id, merchant_id, mode, asset, number, amount, destination, state, created_at, closed_at, paid_at,
       due_at)
     select id, merchant_id, 'live', asset, number, amount, case when paid then chain || ':' || destination end,
       case when paid then 'paid' else 'accumulating' end, created_at, case when paid then closed_at end,
       case when paid then closed_at + interval '1 minute' end, case when not paid then closed_at end
     from history.settlement order by created_at`,
  ],
  [
    "payout_queue",
    `insert into payout_queue (kind, merchant_id, asset, chain, due_at)
     select 'settlement', merchant_id, asset, chain, closed_at from history.settlement where not paid`,
  ],
  [
    "merchant_balance",
    `insert into merchant_balance (merchant_id, asset, amount, next_settlement)
     select merchant_id, asset, coalesce(sum(amount) filter (where not paid), 0), max(number) + 1
     from history.settlement group by merchant_id, asset`,
  ],
  [
    "refund",
    `insert into refund (id, payment_id, number, account_id, mode, merchant_id, asset, amount, receiver, state, created_at,
       updated_at, tx_hash, paid_at)
     select id, payment_id, 1, account_id, 'live', merchant_id, asset, amount, payer, 'paid', at, at + interval '1 minute',
       tx_hash, at + interval '1 minute' from history.refund order by n`,
  ],
  [
    "settlement_deduction",
    `insert into settlement_deduction (refund_id, settlement_id, payment_id, amount)
     select id, settlement_id, payment_id, amount from history.refund`,
  ],
  [
    "ledger_group",
    `insert into ledger_group (id, kind, subject, chain, block_number, block_id, tx_hash, log_index, at)
     overriding system value
     select id, kind, subject, chain, block_number, case when chain is not null then history.make_hash(chain || block_number) end,
       tx_hash, log_index, at from history.ledger_group
     union all
     select (select max(id) from history.ledger_group) + row_number() over (order by id), 'exception_resolved', id::text,
       null, null, null, null, null, at + interval '1 day' from history.ledger_group where resolved
     order by 1;
     select setval(pg_get_serial_sequence('ledger_group', 'id'), (select max(id) from ledger_group))`,
  ],
  [
    "ledger_entry",
    `insert into ledger_entry (group_id, account, asset, amount)
     select g.id, e.account, g.asset, e.amount
     from history.ledger_group g cross join unnest(g.accounts, g.amounts) as e (account, amount) where e.amount <> 0
     order by g.id;
     insert into ledger_entry (group_id, account, asset, amount)
     select g.id, e.account, g.asset, e.sign * g.amount
     from (
       select (select max(id) from history.ledger_group) + row_number() over (order by id) as id, asset, amounts[1] as amount
       from history.ledger_group where resolved
     ) g cross join (values ('exceptions', 1), ('losses', -1)) as e (account, sign) order by g.id`,
  ],
  [
    "ledger_day",
    `insert into ledger_day (account, asset, day, shard, amount)
     with booked as (
       select e.account, g.asset, ledger_day_of(g.at) as day, g.id, e.amount
       from history.ledger_group g cross join unnest(g.accounts, g.amounts) as e (account, amount)
       union all
       select e.account, g.asset, ledger_day_of(g.at + interval '1 day'), g.id, e.sign * g.amounts[1]
       from history.ledger_group g cross join (values ('exceptions', 1), ('losses', -1)) as e (account, sign)
       where g.resolved
     )
     select account, asset, day, case when account ~ '^(payable|lane):' then 0 else id % 16 end, sum(amount)
     from booked group by 1, 2, 3, 4`,
  ],
];
