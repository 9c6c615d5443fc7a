import { type RawBuilder, sql } from "kysely";
import type { Db } from "../tables.ts";

/** SQL: the amount that refunds deducted from a payment (`p`) before its payout, minor units of the asset of the payout. */
export const deducted = sql<bigint>`(
  select coalesce(sum(d.amount), 0) from settlement_deduction d where d.payment_id = p.id)`;

/** SQL: the amount that a succeeded payment (`p`) earns its merchant, before deductions by refunds. */
export const owed = sql`coalesce(p.owed_amount, p.paid_amount - p.fee)`;

/**
 * Records what a refund deducts from a locked settlement: from the share of its own payment first, then from the shares of
 * the oldest other payments. An amount beyond the shares of all payments is not recorded for any payment.
 */
export async function insertDeductions(
  db: Db,
  args: { refundId: string; settlementId: string; paymentId: string | null; amount: bigint },
): Promise<void> {
  const own = await deduct(db, args, sql`p.id = ${args.paymentId}`);
  const rest = args.amount - own;
  if (rest > 0n) await deduct(db, { ...args, amount: rest }, sql`p.id is distinct from ${args.paymentId}`);
}

/** Deducts from the selected payments and returns the amount that they cover. A refund that is raised can deduct from one again. */
async function deduct(
  db: Db,
  { refundId, settlementId, amount }: { refundId: string; settlementId: string; amount: bigint },
  which: RawBuilder<unknown>,
): Promise<bigint> {
  const { rows } = await sql<{ amount: bigint }>`
    with taken as (select id, least(part, ${amount}::numeric - before) as amount from (
      select id, part, coalesce(sum(part) over (order by created_at, id rows between unbounded preceding and 1 preceding), 0) as before
      from (
        select p.id, p.created_at, ${owed} - ${deducted} as part from payment p
        where p.settlement_id = ${settlementId} and ${which}
      ) parts
      where part > 0
    ) in_order
    where before < ${amount}::numeric), recorded as (
      insert into settlement_deduction (refund_id, settlement_id, payment_id, amount)
      select ${refundId}, ${settlementId}, id, amount from taken
      on conflict (refund_id, settlement_id, payment_id) do update set amount = settlement_deduction.amount + excluded.amount
    ) select amount from taken`.execute(db);
  return rows.reduce((sum, row) => sum + row.amount, 0n);
}
