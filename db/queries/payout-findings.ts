import { sql } from "kysely";
import { anyOf } from "../any-of.ts";
import type { Finding } from "../findings.ts";
import type { Db } from "../tables.ts";
import { anyFound, type CheckScope, findInPages, payoutsSince } from "./check-scope.ts";

/**
 * Finds refunds that are being paid with another amount than the ledger has booked or without a transfer, refunds to
 * another account than the payer's, and refunds that exceed their payment together. Reads refunds that have not been paid.
 */
export async function findWrongRefunds(db: Db): Promise<Finding[]> {
  const { rows } = await sql<Finding>`
    with open as materialized (
      select r.id, r.payment_id, r.exception_id, r.asset, r.amount, r.receiver, r.state, (
        select coalesce(sum(-e.amount), 0) from ledger_group g join ledger_entry e on e.group_id = g.id
        where g.subject in (r.id, r.exception_id::text, (select t.id from transfer t where t.refund_id = r.id and t.purpose = 'refund'))
          and g.kind in ('refund_begun', 'refund_reduced', 'refund_raised', 'overpaid', 'exception_resolved')
          and e.account = 'in_transit' and e.asset = r.asset
      ) as booked
      from refund r where r.state in ('due', 'held', 'paying')
    )
    select 'refund_unbooked' as kind, id as subject, asset, amount::text as found, booked::text as expected
    from open where amount <> booked and (state = 'paying' or exception_id is not null)
    union all
    select 'refund_without_transfer', id, asset, amount::text, '0' from open r
    where r.state = 'paying' and (select t.id from transfer t where t.refund_id = r.id and t.purpose = 'refund' limit 1) is null
    union all
    select 'refund_receiver_differs', r.id, r.asset, r.receiver, o.payer
    from open r join payment p on p.id = r.payment_id
    left join payment_option o on o.payment_id = p.id and o.id = p.option_id
    where r.state in ('due', 'held') and r.receiver is distinct from o.payer
    union all
    select 'refunds_exceed_payment', p.id, p.paid_asset, sum(r.amount)::text, p.paid_amount::text
    from payment p join refund r on r.payment_id = p.id and r.state <> 'withdrawn'
    where p.id in (select payment_id from open)
    group by p.id, p.paid_asset, p.paid_amount having sum(r.amount) > coalesce(p.paid_amount, 0)
    order by 1, 2`.execute(db);
  return rows;
}

/**
 * Finds transfers of payouts that no settlement or refund has begun, and those with another amount, asset or receiver.
 * Reads transfers that have not ended, those booked since the beginning of the scope, and those that a former check has found.
 */
export async function findWrongPayoutTransfers(db: Db, scope: CheckScope): Promise<Finding[]> {
  const { rows } = await sql<{ id: string }>`
    select id from transfer where purpose in ('settlement', 'refund') and state not in ('confirmed', 'ended')
    union
    select subject from ledger_group where kind in ('settlement_paid', 'refund_paid') and at >= ${payoutsSince(scope)}
    union
    select id from transfer where id = ${anyFound} and purpose in ('settlement', 'refund')`.execute(db);
  return findInPages(rows, (ids) => findWrongTransfers(db, ids));
}

async function findWrongTransfers(db: Db, ids: readonly string[]): Promise<Finding[]> {
  const { rows } = await sql<Finding>`
    with compared as (
      select t.id, t.asset, t.amount, t.receiver, coalesce(s.state, r.state) in ('paying', 'paid') as begun,
        coalesce(s.asset, r.asset) as owed_asset, coalesce(s.amount, r.amount) as owed,
        coalesce(split_part(s.destination, ':', 3), r.receiver) as destination
      from transfer t left join settlement s on s.id = t.settlement_id left join refund r on r.id = t.refund_id
      where t.id = ${anyOf(ids)}
    )
    select 'transfer_without_purpose' as kind, id as subject, asset, amount::text as found, '0' as expected
    from compared where begun is not true
    union all
    select 'transfer_differs', id, asset, amount::text, owed::text from compared
    where begun and (amount <> owed or asset <> owed_asset)
    union all
    select 'transfer_receiver_differs', id, asset, receiver, destination from compared
    where begun and case when asset like 'eip155:%' then lower(receiver) is distinct from lower(destination)
      else receiver is distinct from destination end
    order by 1, 2`.execute(db);
  return rows;
}
