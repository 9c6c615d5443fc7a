import { catalog, type QueueName } from "../queues/catalog.ts";

/**
 * Jobs of one queue that a process runs for one chain at the same time: a quarter of the slots of the queues that verify
 * attempts. While the endpoints of a chain hang, each of its jobs keeps its slot for many seconds.
 */
const MOST = 16;

type Job = { queue: QueueName; chain: string };
type RunJob = (of: Job, job: () => Promise<void>) => Promise<void>;

/**
 * Creates the function that runs jobs and leaves out those whose chain has its share of the slots of their queue: `MOST`, or as
 * many as leave one slot for each other chain that runs no job. So the endpoints of any number of chains may hang, and each other
 * chain is served. The rows of such a job must have a due time, at which the sweep enqueues them again.
 * @param chains the chains of the networks file
 */
export function createChainShares(chains: readonly string[]): RunJob {
  const running: Job[] = [];
  const hasShare = ({ queue, chain }: Job): boolean => {
    const busy = running.filter((job) => job.queue === queue).map((job) => job.chain);
    const own = busy.filter((one) => one === chain).length;
    const free = catalog[queue].concurrency - busy.length;
    const idle = chains.filter((one) => !busy.includes(one)).length;
    return own >= MOST || (own > 0 && free <= idle);
  };
  return async (of, job) => {
    if (hasShare(of)) return;
    running.push(of);
    try {
      await job();
    } finally {
      running.splice(running.indexOf(of), 1);
    }
  };
}
