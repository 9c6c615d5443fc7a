/** Items that may be gathered into one outward call, and how long the first one waits for company, milliseconds. */
export type GatherOptions = { most: number; waitMs: number };

/**
 * Turns a function over many into one over a single item: calls made at about the same time share one outward call.
 * A failure of the shared call fails each of them.
 */
export function gather<I, O>(many: (items: I[]) => Promise<O[]>, options: GatherOptions): (item: I) => Promise<O> {
  type Waiting = { item: I; resolve: (value: O) => void; reject: (cause: unknown) => void };
  let waiting: Waiting[] = [];
  let timer: NodeJS.Timeout | undefined;

  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const batch = waiting;
    waiting = [];
    many(batch.map(({ item }) => item)).then(
      (values) => {
        for (const [index, { resolve }] of batch.entries()) resolve(values[index] as O);
      },
      (cause) => {
        for (const { reject } of batch) reject(cause);
      },
    );
  };
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (waiting.length >= options.most) flush();
      else timer ??= setTimeout(flush, options.waitMs);
    });
}
