/**
 * Makes concurrent callers share runs. A caller that arrives during a run waits for the next run, which starts after the
 * call, so a run always sees what its callers wrote before. Runs of one key never overlap.
 */
export function singleFlight<T>(run: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  const next = new Map<string, Promise<T>>();

  const start = (key: string): Promise<T> => {
    const started = run(key).finally(() => running.delete(key));
    running.set(key, started);
    return started;
  };
  return (key) => {
    // A queued run has not started yet, so it serves this caller too.
    const queued = next.get(key);
    if (queued) return queued;
    const current = running.get(key);
    if (!current) return start(key);
    const following = current.then(noop, noop).then(() => {
      next.delete(key);
      return start(key);
    });
    next.set(key, following);
    return following;
  };
}

const noop = () => undefined;
