import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** Makes the ready transfers of a payment, its settlement and its refunds due, also those on hold. Returns how many. */
export async function makeTransfersDue(
  db: Db,
  { paymentId, settlementId, at }: { paymentId: string; settlementId: string | null; at: Date },
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable("transfer")
    .set({ due_at: at, hold_until: null })
    .where("state", "=", "ready")
    .where(({ or, eb, selectFrom }) =>
      or([
        eb("payment_id", "=", paymentId),
        eb("settlement_id", "=", settlementId),
        eb("refund_id", "in", selectFrom("refund").select("id").where("payment_id", "=", paymentId)),
      ]),
    )
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** The signatures that a payment's transfer is relayed with. */
export type TransferSignatures = { signature: Buffer; permit: Buffer | null };

/**
 * Stores the signatures of a payment's transfer that has none and is awaited or included. An awaited transfer becomes
 * ready. Returns the id of a transfer that did.
 */
export async function attachToTransfer(
  db: Db,
  { paymentId, signature, permit, at }: { paymentId: string; at: Date } & TransferSignatures,
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from attach_signatures(${paymentId}, ${signature}, ${permit}, ${at}) as id`.execute(db);
  return rows.map(({ id }) => id);
}
