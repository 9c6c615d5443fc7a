/**
 * Turns a step over many into one over a single item. What is asked for while a run is under way shares the next one:
 * alone, an item waits for nobody; under load, many share a statement, a commit, a call. Runs never overlap.
 * @param options.most items in one run
 * @param options.everyMs a run begins so long after the one before it at the earliest, milliseconds, so that under load it
 * has company; 0 when unset
 * @param options.keyOf a run takes one item of a key at most, in the order of arrival: many of one key keep no other one
 * waiting
 * @param options.isOnes true for an error that one item alone may have caused: then each is run by itself, and fails by
 * itself
 */
export function together<I, O>(
  many: (items: I[]) => Promise<readonly O[]>,
  options: { most: number; everyMs?: number; keyOf?: (item: I) => string; isOnes?: (cause: unknown) => boolean },
): (item: I) => Promise<O> {
  type Waiting = { item: I; resolve: (value: O) => void; reject: (cause: unknown) => void };
  let waiting: Waiting[] = [];
  let running = false;

  const runOnce = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const values = await many(batch.map(({ item }) => item));
      for (const [index, { resolve }] of batch.entries()) resolve(values[index] as O);
    } catch (cause) {
      if (batch.length > 1 && options.isOnes?.(cause)) for (const one of batch) await runOnce([one]);
      else for (const { reject } of batch) reject(cause);
    }
  };
  const drain = async (): Promise<void> => {
    // Whoever asks in the same turn of the event loop comes along.
    await new Promise(setImmediate);
    while (waiting.length > 0) {
      const batch = pick(waiting, options.most, options.keyOf);
      const taken = new Set(batch);
      waiting = waiting.filter((one) => !taken.has(one));
      const began = performance.now();
      await runOnce(batch);
      const early = (options.everyMs ?? 0) - (performance.now() - began);
      if (early > 0 && waiting.length < options.most) await new Promise((resolve) => setTimeout(resolve, early));
    }
    running = false;
  };
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (running) return;
      running = true;
      void drain();
    });
}

/** The first so many items, one of a key at most. */
function pick<I, W extends { item: I }>(waiting: readonly W[], most: number, keyOf?: (item: I) => string): W[] {
  if (!keyOf) return waiting.slice(0, most);
  const first = new Map<string, W>();
  for (const one of waiting) {
    const key = keyOf(one.item);
    if (!first.has(key)) first.set(key, one);
    if (first.size === most) break;
  }
  return [...first.values()];
}

/** SQLSTATE classes 22 and 23: a value or a constraint of one row, which must not spoil the others. */
const isOneRows = (cause: unknown) => /^2[23]/.test(String((cause as { code?: unknown } | null)?.code));

/**
 * The same for statements: one queue for each database, made when it is first used. In a transaction everything is asked
 * by itself, because it must see what the transaction has done.
 */
export function statementTogether<D extends object & { isTransaction: boolean }, I, O>(
  many: (db: D, items: readonly I[]) => Promise<readonly O[]>,
): (db: D, item: I) => Promise<O> {
  const queues = new WeakMap<D, (item: I) => Promise<O>>();
  return async (db, item) => {
    if (db.isTransaction) return (await many(db, [item]))[0] as O;
    const queue = queues.get(db) ?? together((items: I[]) => many(db, items), { most: 200, isOnes: isOneRows });
    queues.set(db, queue);
    return queue(item);
  };
}
