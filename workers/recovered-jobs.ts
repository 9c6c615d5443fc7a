import type { Queue } from "bullmq";
import type { Logger } from "pino";
import { removeSuperseded } from "../queues/failed-jobs.ts";

/** Interval between two checks of the failed jobs, milliseconds. */
const CHECK_EVERY_MS = 5_000;

/**
 * Regularly removes failed jobs whose work has been done since, or has failed again in a newer job. Returns the function that
 * ends this.
 */
export function removeRecoveredJobs(deps: {
  queues: readonly Queue[];
  /** Returns those of the given rows whose work still waits. */
  listOpen: (rows: readonly string[]) => Promise<ReadonlySet<string>>;
  log: Logger;
  now: () => Date;
}): () => void {
  const { queues, listOpen, log, now } = deps;
  let running = false;
  const check = async () => {
    if (running) return;
    running = true;
    try {
      const removed = await removeSuperseded(queues, { now: now(), listOpen });
      if (removed > 0) log.info({ removed }, "failed jobs of finished or repeated work removed");
    } catch (err) {
      log.warn({ err }, "failed jobs cannot be checked");
    } finally {
      running = false;
    }
  };
  const timer = setInterval(() => void check(), CHECK_EVERY_MS);
  return () => clearInterval(timer);
}
