import { type Selectable, sql } from "kysely";
import type { Db, Mode, Tables } from "./tables.ts";

export type SettlementRow = Selectable<Tables["settlement"]>;
export type NewSettlement = {
  id: string;
  merchantId: string;
  mode: Mode;
  asset: string;
  number: number;
  amount: bigint;
  paymentId: string;
};

/** Writes settlements that are due, and ties each to the payment it pays out. */
export async function insertSettlements(
  db: Db,
  settlements: readonly NewSettlement[],
  args: { at: Date; dueAt: Date },
): Promise<void> {
  if (settlements.length === 0) return;
  await db
    .insertInto("settlement")
    .values(
      settlements.map((one) => ({
        id: one.id,
        merchant_id: one.merchantId,
        mode: one.mode,
        asset: one.asset,
        number: one.number,
        amount: one.amount,
        destination: null,
        state: "due" as const,
        created_at: args.at,
        paid_at: null,
        due_at: args.dueAt,
      })),
    )
    .execute();
  await sql`
    update payment set settlement_id = pair.settlement_id
    from unnest(${settlements.map((one) => one.paymentId)}::text[], ${settlements.map((one) => one.id)}::text[]) as pair (payment_id, settlement_id)
    where payment.id = pair.payment_id`.execute(db);
}

/** A settlement with the destination that is registered for it now; null when there is none. */
export type SettlementWithDestination = SettlementRow & { registered: string | null };

/** Those of these settlements that still have to be begun; in no particular order. */
export async function listDueSettlements(db: Db, ids: readonly string[]): Promise<SettlementWithDestination[]> {
  return db
    .selectFrom("settlement as s")
    .leftJoin("settlement_destination as d", (join) =>
      join.onRef("d.merchant_id", "=", "s.merchant_id").onRef("d.asset", "=", "s.asset"),
    )
    .selectAll("s")
    .select("d.destination as registered")
    .where(sql<boolean>`s.id = any(${ids})`)
    .where("s.state", "=", "due")
    .execute();
}
