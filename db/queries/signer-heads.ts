import { sql } from "kysely";
import type { AuditHead } from "../../runtime/audit-chain.ts";
import type { Db } from "../tables.ts";

/** The subject of the entries about the signer's own audit log. */
export const SIGNER_LOG = "signer-log";

/** What the audit log says about the signer's: its newest entry was reported, contradicts an earlier one, or was accepted. */
export const signerLogActions = ["signer_log.reported", "signer_log.contradicted", "signer_log.accepted"] as const;
type SignerLogAction = (typeof signerLogActions)[number];

/**
 * Returns the newest entry about the signer's log with one of these actions. `head` is the newest entry of that log, null when it
 * had none.
 */
export async function findSignerReport(
  db: Db,
  actions: readonly SignerLogAction[],
): Promise<{ action: SignerLogAction; head: AuditHead | null } | undefined> {
  const { rows } = await sql<{ action: SignerLogAction; head: AuditHead | null }>`
    select action, after -> 'head' as head from audit_entry
    where subject = ${SIGNER_LOG} and action = any(${actions as string[]})
    order by day desc, sequence desc limit 1`.execute(db);
  return rows[0];
}
