import { sql } from "kysely";
import type { Db } from "../tables.ts";

/**
 * Returns the treasury's inventory of an asset: its holdings minus what it owes in that asset, minor units. A negative
 * inventory means that the treasury owes more than it has. What lies at the cold address is held too.
 *
 * Payouts of money that came in another asset and that have not begun do not count as owed, because the inventory pays for
 * them. Open exceptions that are owed count in full: an unexplained outflow (`lost`) does not reduce them, and corrections
 * by operators count only if their sum increases what is owed.
 */
export async function readInventory(db: Db, asset: string): Promise<bigint> {
  const { rows } = await sql<{ inventory: bigint }>`
    with booked as (
      select coalesce(sum(amount) filter (where account in ('treasury', 'cold')), 0) as treasury,
        coalesce(sum(amount) filter (where account = 'in_transit'), 0) as in_transit,
        coalesce(sum(amount) filter (where account = 'exceptions'), 0) as exceptions
      from ledger_day where account in ('treasury', 'cold', 'in_transit', 'exceptions') and asset = ${asset}
    ), lost as (
      select coalesce(sum(e.amount), 0) as amount
      from ledger_entry e join ledger_group g on g.id = e.group_id
      where e.account = 'exceptions' and e.asset = ${asset} and e.amount > 0 and g.kind in ('unmatched', 'overpaid')
        and not exists (select from ledger_group r where r.kind = 'exception_resolved' and r.subject = g.id::text)
    ), corrected as (
      select coalesce(sum(e.amount), 0) as amount
      from ledger_entry e join ledger_group g on g.id = e.group_id
      where e.account = 'exceptions' and e.asset = ${asset} and g.kind = 'correction'
    )
    select booked.treasury + least(0, booked.in_transit)
      + booked.exceptions - lost.amount - greatest(0, corrected.amount)
      - coalesce((select sum(amount) from merchant_balance where asset = ${asset}), 0)
      + coalesce((select sum(amount) from settlement
          where asset = ${asset} and converted and state in ('due', 'accumulating')), 0) as inventory
    from booked, lost, corrected`.execute(db);
  return rows[0]?.inventory ?? 0n;
}

/** Locks the inventory of an asset until the end of the transaction, against other payouts that draw on it. */
export async function lockInventory(db: Db, asset: string): Promise<void> {
  await sql`select lock_inventory(${asset})`.execute(db);
}
