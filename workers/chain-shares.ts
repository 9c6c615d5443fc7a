import type { QueueName } from "../queues/catalog.ts";

/**
 * Jobs of one queue that a process runs for one chain at the same time: a quarter of the slots of the queues that verify
 * attempts. While the endpoints of a chain hang, each of its jobs keeps its slot for many seconds.
 */
const MOST = 16;

type RunJob = (of: { queue: QueueName; chain: string }, job: () => Promise<void>) => Promise<void>;

/**
 * Creates the function that runs jobs and leaves out those whose chain has all its slots of their queue, so that slots stay
 * free for other chains. The rows of such a job must have a due time, at which the sweep enqueues them again.
 */
export function createChainShares(): RunJob {
  const running = new Map<string, number>();
  return async ({ queue, chain }, job) => {
    const key = `${queue} ${chain}`;
    const count = () => running.get(key) ?? 0;
    if (count() >= MOST) return;
    running.set(key, count() + 1);
    try {
      await job();
    } finally {
      running.set(key, count() - 1);
    }
  };
}
