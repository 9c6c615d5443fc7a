import { closeAuditDays, markHeadExported, takeUnexportedHead } from "../../db/queries/audit-heads.ts";
import { writeHeadLine } from "../../runtime/audit-head-lines.ts";
import type { AuditSink } from "../../runtime/audit-sink.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/**
 * Ends the days of the audit log that are over, logs the head of each, and sends heads to the sink until it accepts
 * them, the oldest first. Safe to run in several processes at once.
 * @param sink undefined when none is configured: heads are kept until there is one
 */
export async function exportAuditHeads(
  deps: Pick<PaymentDeps, "db" | "now" | "log">,
  sink: AuditSink | undefined,
): Promise<void> {
  for (const head of await closeAuditDays(deps.db, deps.now())) deps.log.info(head, "head of the audit log");
  if (sink) while (await exportOne(deps, sink));
}

/** Exports the oldest head that is not exported. Returns false when there is none, or another process exports it. */
async function exportOne({ db, now }: Pick<PaymentDeps, "db" | "now">, sink: AuditSink): Promise<boolean> {
  return db.transaction().execute(async (db) => {
    const head = await takeUnexportedHead(db);
    if (!head) return false;
    await sink(writeHeadLine("service", head));
    await markHeadExported(db, { day: head.day, at: now() });
    return true;
  });
}
