import type { Pool } from "../../db/tables.ts";

export type History = {
  /** Every move of the payment, its attempts, its transfers and its settlement, oldest first. */
  moves: { at: Date; machine: string; subject: string; from: string; to: string }[];
  settlement:
    | { id: string; state: string; amount: bigint; destination: string | null; paidAt: Date | null }
    | undefined;
  bookings: { at: Date; kind: string; account: string; asset: string; amount: bigint }[];
};

/** What is on record about a payment. */
export async function readHistory(db: Pool, paymentId: string): Promise<History> {
  const payment = await db.selectFrom("payment").selectAll().where("id", "=", paymentId).executeTakeFirstOrThrow();
  const settlementId = payment.settlement_id ?? "";
  const settlement = await db.selectFrom("settlement").selectAll().where("id", "=", settlementId).executeTakeFirst();
  const attempts = await db.selectFrom("attempt").select("id").where("payment_id", "=", paymentId).execute();
  const transfers = await db
    .selectFrom("transfer")
    .select("id")
    .where((row) => row.or([row("payment_id", "=", paymentId), row("settlement_id", "=", settlementId)]))
    .execute();
  const subjects = [paymentId, settlementId, ...[...attempts, ...transfers].map(({ id }) => id)];
  const moves = await db
    .selectFrom("event")
    .select(["at", "machine", "subject", "from_state as from", "to_state as to"])
    .where("subject", "in", subjects)
    .orderBy("id")
    .execute();
  const bookings = await db
    .selectFrom("ledger_entry")
    .innerJoin("ledger_group", "ledger_group.id", "ledger_entry.group_id")
    .select(["ledger_group.at", "ledger_group.kind", "account", "asset", "amount"])
    .where("ledger_group.subject", "in", subjects)
    .orderBy("ledger_entry.id")
    .execute();
  const paid = settlement && {
    id: settlement.id,
    state: settlement.state,
    amount: settlement.amount,
    destination: settlement.destination,
    paidAt: settlement.paid_at,
  };
  return { moves, settlement: paid, bookings };
}
