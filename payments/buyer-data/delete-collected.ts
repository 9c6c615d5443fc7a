import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { type CollectedOf, deleteCollectedOf } from "../../db/queries/collected-data.ts";
import type { Db } from "../../db/tables.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/**
 * Deletes the stored data of a payment's buyer, or of a payer's account in all payments, before its retention ends. Writes an
 * audit entry for each payment, without the account. Returns the payments and how many rows of each were deleted. Copies in
 * backups of the database remain until these expire.
 */
export async function deleteCollected(
  deps: Pick<PaymentDeps, "now"> & { db: Db },
  args: { of: CollectedOf; actor: AuditActor },
): Promise<{ paymentId: string; rows: number }[]> {
  return inTransaction(deps.db, async (db) => {
    const deleted = await deleteCollectedOf(db, args.of);
    const rowsOf = Map.groupBy(deleted, (paymentId) => paymentId);
    const counts = [...rowsOf].map(([paymentId, rows]) => ({ paymentId, rows: rows.length }));
    const entries = counts.map(({ paymentId, rows }) => ({
      actor: args.actor,
      action: "collected_data.deleted",
      subject: paymentId,
      before: { rows },
      after: null,
      at: deps.now(),
    }));
    await insertAuditEntries(db, entries);
    return counts;
  });
}
