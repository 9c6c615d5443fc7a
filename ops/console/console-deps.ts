import type { Queue } from "bullmq";
import type { AuditEntry } from "../../db/queries/audit-entries.ts";
import type { PaymentDeps } from "../../payments/payment-deps.ts";
import type { JobDescription } from "../../queues/describe-job.ts";
import type { Log } from "../../runtime/log.ts";

/** What the console works with. `db` limits the time of a statement: some searches read a whole table. */
export type ConsoleDeps = Pick<PaymentDeps, "db" | "now"> & {
  queues: readonly Queue[];
  /** Returns what a job works on. */
  describeJob: (queue: string, data: unknown) => JobDescription;
  /** Writes to the audit log. Nothing is written to a queue when this rejects. */
  record: (entry: AuditEntry) => Promise<unknown>;
  log: Log;
};
