/**
 * Turns a function over many items into one over a list of items. Lists that arrive in one iteration of the event loop are
 * merged into one run, so that no call waits for another one's run. When a merged run fails, each list is run alone and
 * fails alone.
 * @param most items in one merged run at most; a longer list is run alone
 */
export function mergeCalls<I, O>(
  many: (items: readonly I[]) => Promise<readonly O[]>,
  { most }: { most: number },
): (items: readonly I[]) => Promise<readonly O[]> {
  type Run = { items: I[]; lists: number; results: Promise<readonly O[]> };
  let open: Run | undefined;

  function begin(): Run {
    const run: Run = {
      items: [],
      lists: 0,
      results: new Promise((resolve) => setImmediate(resolve)).then(() => {
        if (open === run) open = undefined;
        return many(run.items);
      }),
    };
    return run;
  }
  return async (items) => {
    const isFull = open !== undefined && open.items.length + items.length > most;
    const run = open === undefined || isFull ? begin() : open;
    open = run;
    const from = run.items.length;
    run.items.push(...items);
    run.lists += 1;
    try {
      return (await run.results).slice(from, from + items.length);
    } catch (error) {
      if (run.lists === 1) throw error;
      return many(items);
    }
  };
}
