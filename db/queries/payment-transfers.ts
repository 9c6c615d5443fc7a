import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** Makes the ready transfers of a payment and of its settlement due, also those on hold. Returns how many. */
export async function makeTransfersDue(
  db: Db,
  { paymentId, settlementId, at }: { paymentId: string; settlementId: string | null; at: Date },
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable("transfer")
    .set({ due_at: at, hold_until: null })
    .where("state", "=", "ready")
    .where(({ or, eb }) => or([eb("payment_id", "=", paymentId), eb("settlement_id", "=", settlementId)]))
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** The signatures that a payment's transfer is relayed with. */
export type TransferSignatures = { signature: Buffer; permit: Buffer | null };

/** Stores the signatures of a payment's transfer that has none and is awaited or included. Returns its id, if it exists. */
export async function storeSignatures(
  db: Db,
  { paymentId, signature, permit }: { paymentId: string } & TransferSignatures,
): Promise<string[]> {
  const rows = await db
    .updateTable("transfer")
    .set({ signature, permit })
    .where("payment_id", "=", paymentId)
    .where("purpose", "=", "payment")
    .where("signature", "is", null)
    .where(sql<boolean>`state in ('awaited', 'included')`)
    .returning("id")
    .execute();
  return rows.map(({ id }) => id);
}
