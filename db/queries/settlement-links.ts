import { type RawBuilder, sql } from "kysely";
import type { Db } from "../tables.ts";
import { deducted, owed } from "./settlement-deductions.ts";

/** Links payments to the settlements that pay them out. */
export async function linkSettlements(
  db: Db,
  ties: readonly { paymentId: string; settlementId: string }[],
): Promise<void> {
  if (ties.length === 0) return;
  await sql`
    update payment set settlement_id = pair.settlement_id
    from unnest(${ties.map((one) => one.paymentId)}::text[], ${ties.map((one) => one.settlementId)}::text[]) as pair (payment_id, settlement_id)
    where payment.id = pair.payment_id`.execute(db);
}

/** Links the payments of one settlement to another one. */
export async function relinkPayments(db: Db, { from, to }: { from: string; to: string }): Promise<void> {
  await db.updateTable("payment").set({ settlement_id: to }).where("settlement_id", "=", from).execute();
}

/** Locks the payments of a settlement until the commit. */
export async function lockPaymentsOf(db: Db, settlementId: string): Promise<void> {
  const rows = db.selectFrom("payment").select("id").where("settlement_id", "=", settlementId).orderBy("id");
  await rows.forNoKeyUpdate().execute();
}

type Relinked = { from: string; to: string; paid: bigint };

/**
 * Links payments of one settlement to another one: those that were booked last, from the one on that `paid` (minor units) does not
 * cover in full.
 */
export async function relinkUnpaid(db: Db, args: Relinked): Promise<void> {
  await relinkWhere(db, args, sql`share.total > ${args.paid}`);
}

/** Links the other payments of the settlement instead: those that were booked first, and that `paid` covers in full. */
export async function relinkPaid(db: Db, args: Relinked): Promise<void> {
  await relinkWhere(db, args, sql`share.total <= ${args.paid}`);
}

async function relinkWhere(db: Db, { from, to }: Relinked, which: RawBuilder<unknown>): Promise<void> {
  await sql`
    with share as (
      select p.id, sum(${owed} - ${deducted}) over (order by (
        select min(e.id) from event e where e.subject = p.id and e.machine = 'payment' and e.to_state = 'succeeded'
      ), p.id) as total
      from payment p where p.settlement_id = ${from}
    )
    update payment set settlement_id = ${to} from share where payment.id = share.id and ${which}`.execute(db);
}
