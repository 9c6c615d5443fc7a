import { withTimeout } from "../runtime/timeout.ts";

/** For how long a read is waited for before the next one begins beside it, milliseconds. */
const WAIT_MS = 150;

/** The maximum number of reads that run at once: half of the connections of a worker, by default. */
const MOST = 5;

/** A scrape waits for a read for this long, milliseconds. A read that took longer was late. */
export const SCRAPE_WAIT_MS = 3_000;

/** The maximum number of reads that run at once and were late the last time. */
const MOST_LATE = 2;

type Reads = Record<string, () => Promise<unknown>>;

/**
 * Returns a function that returns the result of one of several reads. Its first call begins a round of all of them; calls during
 * the round get the results of that round. The reads of a round run one after the other, so that they use one connection. A
 * read that takes longer goes on beside the next ones, so that a lock that it waits for keeps no other read from
 * its result. While it runs, later rounds do not begin it again. A slow database is not asked for all of them at once. A lock on one
 * table can stop as many reads as may run at once, so reads that were late the last time come last, in turns.
 * @param begin returns the reads of a round
 */
export function readInSequence<R extends Reads>(
  begin: () => R,
): <G extends keyof R & string>(group: G) => ReturnType<R[G]> {
  let round: Map<string, PromiseWithResolvers<unknown>> | undefined;
  const running = new Map<string, Promise<unknown>>();
  /** The groups whose last read was late, in the order in which these reads began. */
  const late = new Set<string>();

  const start = (group: string, read: () => Promise<unknown>): Promise<unknown> => {
    if (late.delete(group)) late.add(group);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      late.add(group);
    }, SCRAPE_WAIT_MS);
    const result = read().finally(() => {
      clearTimeout(timer);
      if (!isLate) late.delete(group);
      running.delete(group);
    });
    running.set(group, result);
    return result;
  };
  const countLate = () => [...running.keys()].filter((group) => late.has(group)).length;
  const run = async (reads: R, results: NonNullable<typeof round>): Promise<void> => {
    const punctual = Object.keys(reads).filter((group) => !late.has(group));
    for (const group of [...punctual, ...late]) {
      const [read, end] = [reads[group], results.get(group)];
      const earlier = running.get(group);
      if (earlier) end?.resolve(earlier);
      if (earlier || !read) continue;
      if (late.has(group) && countLate() >= MOST_LATE) {
        end?.reject(new Error(`${group} waits for its turn`));
        continue;
      }
      while (running.size >= MOST) await Promise.race(running.values()).catch(() => undefined);
      const result = start(group, read);
      end?.resolve(result);
      await withTimeout(result, WAIT_MS, group).catch(() => undefined);
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
