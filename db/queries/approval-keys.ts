import type { Insertable, Selectable } from "kysely";
import type { Db, Tables } from "../tables.ts";
import type { AuditActor } from "./audit-entries.ts";

export type ApprovalKeyRow = Selectable<Tables["approval_key"]>;

/** Inserts an approval key. */
export async function insertApprovalKey(db: Db, row: Insertable<Tables["approval_key"]>): Promise<ApprovalKeyRow> {
  return db.insertInto("approval_key").values(row).returningAll().executeTakeFirstOrThrow();
}

/** Returns the approval keys of a merchant, newest first, also revoked ones. */
export async function listApprovalKeyRows(db: Db, merchantId: string): Promise<ApprovalKeyRow[]> {
  return db
    .selectFrom("approval_key")
    .selectAll()
    .where("merchant_id", "=", merchantId)
    .orderBy("created_at", "desc")
    .orderBy("public_key")
    .execute();
}

/** Returns one of a merchant's approval keys. */
export async function findApprovalKeyRow(
  db: Db,
  { merchantId, publicKey }: { merchantId: string; publicKey: string },
): Promise<ApprovalKeyRow | undefined> {
  return db
    .selectFrom("approval_key")
    .selectAll()
    .where("merchant_id", "=", merchantId)
    .where("public_key", "=", publicKey)
    .executeTakeFirst();
}

/** Revokes an approval key, which is then reported. Returns undefined for one that does not exist or was revoked before. */
export async function markApprovalKeyRevoked(
  db: Db,
  { merchantId, publicKey, actor, at }: { merchantId: string; publicKey: string; actor: AuditActor; at: Date },
): Promise<ApprovalKeyRow | undefined> {
  const { kind: revoker_kind, id: revoker_id, address: revoker_address } = actor;
  return db
    .updateTable("approval_key")
    .set({ revoked_at: at, revoker_kind, revoker_id, revoker_address, reported_at: null })
    .where("merchant_id", "=", merchantId)
    .where("public_key", "=", publicKey)
    .where("revoked_at", "is", null)
    .returningAll()
    .executeTakeFirst();
}
