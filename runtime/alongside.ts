/** The calls of each owner that are in progress and have not arrived yet. */
const calls = new WeakMap<object, Set<Promise<void>>>();

/** Waits for the other calls that are in progress at that moment, until each has arrived or ended. */
export type WaitForOthers = () => Promise<unknown>;

/**
 * Runs a call that may wait for the other calls of the same owner, so that they continue together.
 * @param call calls `arrive` when the others need not wait for it any longer, which returns how to wait for them
 */
export async function runAlongside<T>(owner: object, call: (arrive: () => WaitForOthers) => Promise<T>): Promise<T> {
  const others = calls.get(owner) ?? new Set();
  const { promise, resolve } = Promise.withResolvers<void>();
  calls.set(owner, others.add(promise));
  const leave = () => {
    others.delete(promise);
    resolve();
  };
  try {
    return await call(() => {
      leave();
      return () => Promise.all(others);
    });
  } finally {
    leave();
  }
}
