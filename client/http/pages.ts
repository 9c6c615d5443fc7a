/** A list over all of its pages. Iterating over it yields the entries; pages are requested as they are needed. */
export type Pages<T, P> = AsyncIterable<T> & {
  /** Iterates over the pages as the service returns them, with their `nextCursor`. */
  pages(): AsyncIterable<P>;
};

/**
 * Returns the list that these pages make up.
 * @param read returns the page at a cursor; undefined stands for the first
 * @param entriesOf returns the entries of a page
 */
export function listPages<T, P extends { readonly nextCursor: string | null; readonly hasMore?: boolean }>(
  read: (cursor: string | undefined) => Promise<P>,
  entriesOf: (page: P) => readonly T[],
  first?: string,
): Pages<T, P> {
  async function* pages() {
    let cursor = first;
    for (;;) {
      const page = await read(cursor);
      yield page;
      const { nextCursor, hasMore = nextCursor !== null } = page;
      if (!hasMore || nextCursor === null) return;
      cursor = nextCursor;
    }
  }
  return {
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const page of pages()) yield* entriesOf(page);
    },
  };
}
