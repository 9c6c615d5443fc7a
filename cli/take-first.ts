/** Returns the first entries of a list that is read page by page. */
export async function takeFirst<T>(list: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const one of list) {
    taken.push(one);
    if (taken.length >= count) break;
  }
  return taken;
}
