import { type RawBuilder, sql } from "kysely";
import type { Db } from "./tables.ts";

/** SQL: what refunds have taken of a payment (`p`) before its payout, minor units of the asset that its merchant is paid in. */
export const deducted = sql<bigint>`(
  select coalesce(sum(d.amount), 0) from settlement_deduction d where d.payment_id = p.id)`;

/** SQL: what a payment (`p`) that has succeeded comes to for its merchant, without what refunds have taken of it. */
const owed = sql`coalesce(p.owed_amount, p.paid_amount - p.fee)`;

/**
 * Notes what a refund has taken out of a settlement that is locked: of its own payment's part first, then of the parts of
 * the oldest others. What is in the settlement beyond the parts of its payments has none to be noted for.
 */
export async function insertDeductions(
  db: Db,
  args: { refundId: string; settlementId: string; paymentId: string | null; amount: bigint },
): Promise<void> {
  const own = await deduct(db, args, sql`p.id = ${args.paymentId}`);
  const rest = args.amount - own;
  if (rest > 0n) await deduct(db, { ...args, amount: rest }, sql`p.id is distinct from ${args.paymentId}`);
}

/** Returns how much of the amount these payments have covered. */
async function deduct(
  db: Db,
  { refundId, settlementId, amount }: { refundId: string; settlementId: string; amount: bigint },
  which: RawBuilder<unknown>,
): Promise<bigint> {
  const { rows } = await sql<{ amount: bigint }>`
    insert into settlement_deduction (refund_id, settlement_id, payment_id, amount)
    select ${refundId}, ${settlementId}, id, least(part, ${amount}::numeric - before) from (
      select id, part, coalesce(sum(part) over (order by created_at, id rows between unbounded preceding and 1 preceding), 0) as before
      from (
        select p.id, p.created_at, ${owed} - ${deducted} as part from payment p
        where p.settlement_id = ${settlementId} and ${which}
      ) parts
      where part > 0
    ) in_order
    where before < ${amount}::numeric
    returning amount`.execute(db);
  return rows.reduce((sum, row) => sum + row.amount, 0n);
}
