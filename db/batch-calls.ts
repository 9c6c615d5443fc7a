import { currentTrace, inTracesOf } from "../runtime/tracing/spans.ts";

/**
 * Turns a function over many items into a function over one item, as a DataLoader does. Calls that arrive while a run is
 * in progress are batched into the next run: a single call runs at once, and under load many calls share a statement, a
 * commit or a request. Runs never overlap. A run belongs to the traces of its calls.
 * @param options.most the maximum number of items in one run
 * @param options.sizeOf the number of items that an item counts as (1 when unset); one that exceeds `most` runs alone
 * @param options.keyOf limits a run to one item per key, in the order of arrival, so that many items of one key do not
 * delay the others
 * @param options.isOnes returns true for an error that a single item may have caused; every item is then run alone, and
 * fails alone
 */
export function batchCalls<I, O>(
  many: (items: I[]) => Promise<readonly O[]>,
  options: {
    most: number;
    sizeOf?: ((item: I) => number) | undefined;
    keyOf?: (item: I) => string;
    isOnes?: (cause: unknown) => boolean;
  },
): (item: I) => Promise<O> {
  type Waiting = { item: I; resolve: (value: O) => void; reject: (cause: unknown) => void; trace: string | undefined };
  let waiting: Waiting[] = [];
  let running = false;

  const runBatch = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const run = () => many(batch.map(({ item }) => item));
      const values = await inTracesOf(
        batch.map(({ trace }) => trace),
        "shared work",
        run,
      );
      for (const [index, { resolve }] of batch.entries()) resolve(values[index] as O);
    } catch (cause) {
      if (batch.length > 1 && options.isOnes?.(cause)) for (const one of batch) await runBatch([one]);
      else for (const { reject } of batch) reject(cause);
    }
  };
  const drain = async (): Promise<void> => {
    // Calls from the same iteration of the event loop join the first run.
    await new Promise(setImmediate);
    while (waiting.length > 0) {
      const batch = pick(waiting, options);
      const taken = new Set(batch);
      waiting = waiting.filter((one) => !taken.has(one));
      await runBatch(batch);
    }
    running = false;
  };
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject, trace: currentTrace() });
      if (running) return;
      running = true;
      void drain();
    });
}

/** Returns the first items up to a size of `most`, at least one, with at most one item per key. */
function pick<I, W extends { item: I }>(
  waiting: readonly W[],
  { most, sizeOf, keyOf }: { most: number; sizeOf?: ((item: I) => number) | undefined; keyOf?: (item: I) => string },
): W[] {
  if (!keyOf) {
    let size = 0;
    const end = waiting.findIndex(({ item }, index) => {
      size += sizeOf?.(item) ?? 1;
      return size > most && index > 0;
    });
    return end < 0 ? [...waiting] : waiting.slice(0, end);
  }
  const first = new Map<string, W>();
  for (const one of waiting) {
    const key = keyOf(one.item);
    if (!first.has(key)) first.set(key, one);
    if (first.size === most) break;
  }
  return [...first.values()];
}

/**
 * SQLSTATE classes 22 and 23, an invalid value or a violated constraint of one row; 40001 and 40P01, a conflict or a deadlock
 * over one row. Neither must fail the other rows, and Postgres has undone the statement.
 */
const isOneRows = (cause: unknown) =>
  cause instanceof Error && "code" in cause && /^(2[23]|40001$|40P01$)/.test(String(cause.code));

/** SQLSTATE query_canceled: the statement took too long, perhaps because of one item or a lock on one of its rows. */
export function isTimeout(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "57014";
}

/**
 * Batches calls of a statement, with one queue per database. In a transaction every call runs alone, because it must see
 * the transaction's own changes.
 * @param options.sizeOf the number of rows of an item (1 when unset); a run has 200 rows, or one item
 * @param options.isOnes returns true for further errors after which every item runs alone
 */
export function batchStatements<D extends object & { isTransaction: boolean }, I, O>(
  many: (db: D, items: readonly I[]) => Promise<readonly O[]>,
  { sizeOf, isOnes }: { sizeOf?: (item: I) => number; isOnes?: (cause: unknown) => boolean } = {},
): (db: D, item: I) => Promise<O> {
  const queues = new WeakMap<D, (item: I) => Promise<O>>();
  return async (db, item) => {
    if (db.isTransaction) return (await many(db, [item]))[0] as O;
    const options = { most: 200, sizeOf, isOnes: (cause: unknown) => isOneRows(cause) || isOnes?.(cause) === true };
    const queue = queues.get(db) ?? batchCalls((items: I[]) => many(db, items), options);
    queues.set(db, queue);
    return queue(item);
  };
}
