import { findEntryBefore, readAuditEntries } from "../../db/queries/audit-entries.ts";
import { listAuditHeads } from "../../db/queries/audit-heads.ts";
import type { Db } from "../../db/tables.ts";
import { type AuditHead, type ChainFinding, createChainCheck } from "../../runtime/audit-chain.ts";

/** Entries that are read at once. */
const BATCH = 1_000;

/** What a verification found: the number of entries, the newest one, and what is wrong. */
export type AuditVerification = { entries: number; head: AuditHead | null; findings: ChainFinding[] };

/**
 * Recomputes the hash of every entry of the audit log, or of one UTC day, and compares the ends of days with their heads.
 * @param exported heads that were stored outside of the database, which also show what its superuser rewrote
 */
export async function verifyAudit(
  { db }: { db: Db },
  { day, exported }: { day?: string | undefined; exported: readonly AuditHead[] },
): Promise<AuditVerification> {
  const stored = await listAuditHeads(db);
  // The exported head of a day wins: a superuser of the database can change the stored one.
  const heads = [...new Map([...stored, ...exported].map((head) => [head.day, head])).values()];
  const before = day === undefined ? undefined : await findEntryBefore(db, day);
  const check = createChainCheck(
    heads.filter((head) => day === undefined || head.day === day).sort((a, b) => (a.day < b.day ? -1 : 1)),
    before ?? null,
  );
  const result: AuditVerification = { entries: 0, head: null, findings: [] };
  for (let after: AuditHead | undefined; ; ) {
    const batch = await readAuditEntries(db, { after, day, limit: BATCH });
    for (const entry of batch) {
      result.findings.push(...check.add(entry));
      result.entries += 1;
      after = { day: entry.day, sequence: entry.sequence, hash: entry.hash.toString("hex") };
    }
    result.head = after ?? null;
    if (batch.length < BATCH) break;
  }
  result.findings.push(...check.end());
  return result;
}
