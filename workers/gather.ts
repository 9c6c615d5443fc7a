export type GatherOptions = {
  /** Items in one call at most. */
  most: number;
  /** How long the first one waits for company, milliseconds. */
  waitMs: number;
  /** True for an error that one item alone may have caused: then each is called by itself, and fails by itself. */
  isOnes: (cause: unknown) => boolean;
};

/**
 * Turns a step over many into one over a single item: jobs that come at about the same time share one call, with its
 * statements, commits and RPC calls.
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
    callTogether(batch);
  };
  const callTogether = (batch: Waiting[]): void => {
    many(batch.map(({ item }) => item)).then(
      (values) => {
        for (const [index, { resolve }] of batch.entries()) resolve(values[index] as O);
      },
      (cause) => {
        if (batch.length > 1 && options.isOnes(cause)) for (const one of batch) callTogether([one]);
        else for (const { reject } of batch) reject(cause);
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
