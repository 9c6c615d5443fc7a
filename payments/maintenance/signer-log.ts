import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { lockReports } from "../../db/queries/destination-reports.ts";
import { findSignerReport, SIGNER_LOG, signerLogActions } from "../../db/queries/signer-heads.ts";
import type { Db } from "../../db/tables.ts";
import type { AuditHead } from "../../runtime/audit-chain.ts";
import type { AuditHeadResponse } from "../../signer/protocol.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";

// The signer's audit log is in its own store, which only its operator can read. What it had at some time is written here, so that
// a store that was replaced by an older copy, or whose log was shortened, is noticed from outside.

const worker: AuditActor = { kind: "worker", id: "signer-log", address: null };

/**
 * Compares the signer's audit log with the entry that was reported before, and writes the newest one to the service's audit log.
 * When they contradict each other, it writes that instead, again each time the signer's newest entry has changed: an alert fires
 * until an operator accepts the signer's log, or the former log is back. Does nothing while the signer does not answer, or keeps
 * no log: the metric of the last comparison stands still.
 */
export async function recordSignerHead(
  deps: Pick<PaymentDeps, "db" | "now" | "log" | "metrics"> & { signer: Pick<TreasurySigner, "readAuditHead"> },
): Promise<void> {
  await deps.db.transaction().execute(async (db) => {
    if (!(await lockReports(db))) return;
    const known = (await findSignerReport(db, ["signer_log.reported", "signer_log.accepted"]))?.head ?? null;
    const answer = await deps.signer.readAuditHead({
      known: known && { day: known.day, sequence: known.sequence },
    });
    if (!answer) return;
    deps.metrics.signerLogCompared.set(deps.now().getTime() / 1000);
    const newest = await findSignerReport(db, signerLogActions);
    const isContradicted = newest?.action === "signer_log.contradicted";
    const problem = findContradiction(known, answer);
    if (problem) deps.log.error({ known, head: answer.head, problem }, "signer's audit log contradicts what it was");
    if (problem ? isContradicted && isSame(newest.head, answer.head) : !isContradicted && isSame(known, answer.head))
      return;
    const action = problem ? "signer_log.contradicted" : "signer_log.reported";
    const after = { head: answer.head, ...(problem && { problem }) };
    const before = { head: known };
    await insertAuditEntries(db, [{ actor: worker, action, subject: SIGNER_LOG, before, after, at: deps.now() }]);
  });
}

/**
 * Accepts the log that the signer has now, after its store was rebuilt: later ones are compared with it. Refuses with
 * `invalid_state` when nothing contradicts.
 */
export async function acceptSignerLog(
  { db, now }: { db: Db; now: () => Date },
  { actor }: { actor: AuditActor },
): Promise<Result<{ head: AuditHead | null }>> {
  return inTransaction(db, async (db) => {
    const newest = await findSignerReport(db, signerLogActions);
    if (newest?.action !== "signer_log.contradicted")
      return refuse("invalid_state", "the signer's audit log contradicts nothing");
    const { head } = newest;
    const entry = { actor, action: "signer_log.accepted", subject: SIGNER_LOG, before: null, after: { head } };
    await insertAuditEntries(db, [{ ...entry, at: now() }]);
    return done({ head });
  });
}

/** Returns true while the signer's audit log contradicts what was reported before, for metrics. */
export async function isSignerLogContradicted({ db }: Pick<PaymentDeps, "db">): Promise<boolean> {
  const newest = await findSignerReport(db, signerLogActions);
  return newest?.action === "signer_log.contradicted";
}

/**
 * Returns how the signer's log contradicts its earlier newest entry, or undefined. `shortened`: it lacks that entry, as an older
 * copy of the store or a new one does. `changed`: it has another entry in its place. Pure.
 */
function findContradiction(
  known: AuditHead | null,
  { knownHash }: AuditHeadResponse,
): "shortened" | "changed" | undefined {
  if (known === null || knownHash === known.hash) return undefined;
  return knownHash === null ? "shortened" : "changed";
}

const isSame = (a: AuditHead | null, b: AuditHead | null): boolean =>
  a?.day === b?.day && a?.sequence === b?.sequence && a?.hash === b?.hash;
