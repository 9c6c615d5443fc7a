/**
 * Makes many callers share one run: whoever calls while a run is under way waits for the next one, which begins after
 * the call, so that a run always sees what its callers had written before. Runs of one key never overlap.
 */
export function coalesce<T>(run: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  const next = new Map<string, Promise<T>>();

  const start = (key: string): Promise<T> => {
    const started = run(key).finally(() => running.delete(key));
    running.set(key, started);
    return started;
  };
  return (key) => {
    // A run that is queued begins in a moment: a caller must not begin another one beside it.
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
