import type { Queue } from "bullmq";
import type { RetriedJobs } from "../../payments/operators/sign-in.ts";
import type { PaymentDeps } from "../../payments/payment-deps.ts";
import type { JobDescription } from "../../queues/describe-job.ts";
import type { Log } from "../../runtime/log.ts";

/** What the console works with. `db` limits the time of a statement: some searches read a whole table. */
export type ConsoleDeps = Pick<PaymentDeps, "db" | "now"> & {
  queues: readonly Queue[];
  /** Returns what a job works on. */
  describeJob: (queue: string, data: unknown) => JobDescription;
  /** Records in the audit log what the operator of a session runs again. Nothing is run when this rejects. */
  recordRetry: (sessionToken: string, retried: RetriedJobs) => Promise<unknown>;
  log: Log;
};
