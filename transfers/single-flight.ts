/**
 * Makes concurrent callers share runs. The first caller that arrives during a run waits for the next run, which starts after the
 * call, so a run always sees what its callers wrote before. Runs of one key never overlap.
 * @param served returned at once to a caller for whom another one waits already, because a run that hangs must hold no more
 * than two callers
 */
export function singleFlight<T>(run: (key: string) => Promise<T>, served: T): (key: string) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  const queued = new Set<string>();

  const start = (key: string): Promise<T> => {
    const started = run(key).finally(() => running.delete(key));
    running.set(key, started);
    return started;
  };
  return async (key) => {
    // A queued run has not started yet, so it serves this caller too.
    if (queued.has(key)) return served;
    const current = running.get(key);
    if (!current) return start(key);
    queued.add(key);
    return current.then(noop, noop).then(() => {
      queued.delete(key);
      return start(key);
    });
  };
}

const noop = () => undefined;
