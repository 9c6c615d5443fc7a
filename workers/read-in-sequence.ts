import { withTimeout } from "../runtime/timeout.ts";

/** For how long a read is waited for before the next one begins beside it, milliseconds. */
const WAIT_MS = 150;

/** The maximum number of reads that run at once: half of the connections of a worker, by default. */
const MOST = 5;

type Reads = Record<string, () => Promise<unknown>>;

/**
 * Returns a function that returns the result of one of several reads. Its first call begins a round of all of them; calls during
 * the round get the results of that round. The reads of a round run one after the other, so that they use one connection. A
 * read that takes longer goes on beside the next ones, so that a lock that it waits for keeps no other read from
 * its result. While it runs, later rounds do not begin it again. A slow database is not asked for all of them at once.
 * @param begin returns the reads of a round
 */
export function readInSequence<R extends Reads>(
  begin: () => R,
): <G extends keyof R & string>(group: G) => ReturnType<R[G]> {
  const running = new Map<string, Promise<unknown>>();
  let round: Map<string, PromiseWithResolvers<unknown>> | undefined;

  const run = async (reads: R, results: NonNullable<typeof round>): Promise<void> => {
    for (const [group, read] of Object.entries(reads)) {
      const earlier = running.get(group);
      if (!earlier) while (running.size >= MOST) await Promise.race(running.values()).catch(() => undefined);
      const result = earlier ?? read().finally(() => running.delete(group));
      running.set(group, result);
      results.get(group)?.resolve(result);
      if (!earlier) await withTimeout(result, WAIT_MS, group).catch(() => undefined);
    }
    round = undefined;
  };
  const beginRound = () => {
    const reads = begin();
    const results = new Map(Object.keys(reads).map((group) => [group, Promise.withResolvers<unknown>()]));
    // A group that no gauge asks for may fail, too.
    for (const { promise } of results.values()) promise.catch(() => undefined);
    round = results;
    void run(reads, results);
    return results;
  };
  return <G extends keyof R & string>(group: G) => (round ?? beginRound()).get(group)?.promise as ReturnType<R[G]>;
}
