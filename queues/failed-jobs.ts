import type { Queue } from "bullmq";
import { describeJob } from "./describe-job.ts";

/** A failed job that is kept, with the work that it stands for. */
export type FailedJob = {
  id: string;
  failedAt: Date;
  /** The rows of its work. */
  rows: readonly string[];
  /** What repeated work is about. */
  topic: string | undefined;
};

/**
 * After this time, a repeated job that has not failed again has succeeded since, milliseconds: three times the longest
 * interval, which is that of the reconciliation.
 */
const REPEATED_WITHIN_MS = 15 * 60_000;

/**
 * Returns the jobs that say nothing about unfinished work: their rows are done, a newer job has failed for the same work, or
 * repeated work has succeeded since. A job whose data names no work is kept.
 * @param jobs of one queue, the newest first
 * @param open the rows that still wait
 */
export function listSuperseded(jobs: readonly FailedJob[], open: ReadonlySet<string>, now: Date): string[] {
  const covered = new Set<string>();
  return jobs.flatMap(({ id, failedAt, rows, topic }) => {
    if (rows.length === 0 && topic === undefined) return [];
    const isRecent = now.getTime() - failedAt.getTime() < REPEATED_WITHIN_MS;
    const unfinished = topic === undefined ? rows.filter((row) => open.has(row)) : isRecent ? [topic] : [];
    const isNewest = unfinished.some((one) => !covered.has(one));
    for (const one of unfinished) covered.add(one);
    return isNewest ? [] : [id];
  });
}

/**
 * Removes kept failed jobs of all queues that say nothing about unfinished work, so that one failed job is left for each piece
 * of work that waits. Returns their number. Costs one command for each queue while no job has failed.
 * @param listOpen returns those of the given rows whose work still waits
 */
export async function removeSuperseded(
  queues: readonly Queue[],
  { now, listOpen }: { now: Date; listOpen: (rows: readonly string[]) => Promise<ReadonlySet<string>> },
): Promise<number> {
  let removed = 0;
  for (const queue of queues) {
    if ((await queue.getFailedCount()) === 0) continue;
    const kept = await queue.getFailed();
    const jobs = kept.flatMap(({ id, finishedOn, data }): FailedJob[] => {
      const { rows, topic } = describeJob(queue.name, data);
      return id === undefined ? [] : [{ id, failedAt: new Date(finishedOn ?? 0), rows, topic }];
    });
    jobs.sort((one, other) => other.failedAt.getTime() - one.failedAt.getTime());
    const open = await listOpen([...new Set(jobs.flatMap(({ rows }) => rows))]);
    const superseded = new Set(listSuperseded(jobs, open, now));
    const client = await queue.backend.client;
    for (const job of kept.filter(({ id }) => superseded.has(id ?? ""))) {
      // One command decides: an operator has retried the job before it, or finds no failed job after it.
      if ((await client.runCommand("zrem", [queue.toKey("failed"), job.id])) === 0) continue;
      await job.remove();
      removed += 1;
    }
  }
  return removed;
}
