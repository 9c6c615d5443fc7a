import type { AuditSink } from "../../runtime/audit-sink.ts";
import type { SignerDeps } from "../signer-deps.ts";
import { exportHeads } from "./heads.ts";
import { sealRecords } from "./seal-records.ts";

/** Seals deposits and payouts, ends days that are over, and exports their heads. What fails is logged and tried again later. */
export async function keepLog(
  deps: Pick<SignerDeps, "store" | "now" | "log">,
  sink: AuditSink | undefined,
): Promise<void> {
  try {
    sealRecords(deps);
    await exportHeads(deps, sink);
  } catch (err) {
    deps.log.warn({ err }, "heads of the signer's audit log cannot be exported");
  }
}
