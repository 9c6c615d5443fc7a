import { sql } from "kysely";
import type { Finding } from "../findings.ts";
import type { Db } from "../tables.ts";
import { type CheckScope, sumsSince } from "./check-scope.ts";

/** SQL: what the ledger owes each merchant, minor units. Reads the daily sums: a row for each merchant, asset and day. */
const owed = sql`
  select substr(account, 9) as merchant_id, asset, -sum(amount) as amount from ledger_day
  where account like 'payable:%' group by account, asset`;

/**
 * Finds balances of merchants that differ from the ledger, payables that are negative, and balances that differ from the
 * sum of the settlements that have not begun. Reads every balance and the daily sums, whatever their age.
 */
export async function findWrongBalances(db: Db): Promise<Finding[]> {
  const { rows } = await sql<Finding>`
    with owed as materialized (${owed}), waiting as (
      select merchant_id, asset, sum(amount) as amount from settlement
      where state in ('due', 'accumulating') group by merchant_id, asset
    ), compared as (
      select merchant_id, asset, coalesce(b.amount, 0) as balance, coalesce(o.amount, 0) as owed,
        coalesce(w.amount, 0) as waiting
      from merchant_balance b full join owed o using (merchant_id, asset) full join waiting w using (merchant_id, asset)
    )
    select 'balance_differs' as kind, merchant_id as subject, asset, balance::text as found, owed::text as expected
    from compared where balance <> owed
    union all
    select 'payable_negative', merchant_id, asset, owed::text, '0' from compared where owed < 0
    union all
    select 'settlements_differ', merchant_id, asset, waiting::text, balance::text from compared where waiting <> balance
    order by 1, 2, 3`.execute(db);
  return rows;
}

/** SQL: the days in which a former check has found a wrong group or sum. */
const daysFound = sql`
  select right(subject, 10)::date as day from ledger_finding where kind = 'day_differs'
  union select ledger_day_of(g.at) from ledger_finding f
  cross join lateral (select split_part(f.subject, ' ', 1) as kind) named
  cross join lateral (
    select at from ledger_group g
    where g.kind = named.kind and g.subject = substr(f.subject, length(named.kind) + 2) limit 1
  ) g
  where f.kind = 'group_unbalanced'`;

/**
 * Finds ledger groups whose entries do not sum to zero, and daily sums that differ from their entries. Reads the entries
 * of the days since the beginning of the scope, which must begin with a day (UTC), and of days in which a former check has found some.
 */
export async function findWrongSums(db: Db, scope: CheckScope): Promise<Finding[]> {
  const { rows } = await sql<Finding>`
    with found as materialized (
      select day from (${daysFound}) found where day < ledger_day_of(${sumsSince(scope)})
    ), entry as materialized (
      select g.id, g.kind, g.subject, ledger_day_of(g.at) as day, e.account, e.asset, e.amount
      from ledger_group g join ledger_entry e on e.group_id = g.id where g.at >= ${sumsSince(scope)}
      union all
      select g.id, g.kind, g.subject, found.day, e.account, e.asset, e.amount from found
      cross join lateral (
        select * from ledger_group
        where at >= found.day::timestamp at time zone 'UTC' and at < (found.day + 1)::timestamp at time zone 'UTC'
        offset 0
      ) g
      cross join lateral (select * from ledger_entry where group_id = g.id offset 0) e
    ), booked as (
      select account, asset, day, sum(amount) as amount from entry group by account, asset, day
    ), summed as (
      select account, asset, day, sum(amount) as amount from ledger_day
      where day >= ledger_day_of(${sumsSince(scope)}) or day in (select day from found) group by account, asset, day
    )
    select 'group_unbalanced' as kind, kind || ' ' || subject as subject, asset, sum(amount)::text as found, '0' as expected
    from entry group by id, kind, subject, asset having sum(amount) <> 0
    union all
    select 'day_differs', account || ' ' || day, asset, coalesce(s.amount, 0)::text, coalesce(b.amount, 0)::text
    from booked b full join summed s using (account, asset, day) where coalesce(b.amount, 0) <> coalesce(s.amount, 0)
    order by 1, 2, 3`.execute(db);
  return rows;
}
