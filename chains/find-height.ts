/** The first step of the search, in blocks or slots. Each further one is twice as long. */
const FIRST_STEP = 1_024;

/**
 * Returns the highest height up to `newest` that the chain had reached by a time, or 0 when all are later. Searches backwards,
 * because endpoints may lack old blocks. A height without a known time counts as later, so that the result is rather too low.
 * @param readTime returns the time of the block at a height, or undefined if it is unknown
 */
export async function findHeight(
  readTime: (height: number) => Promise<Date | undefined>,
  { newest, at }: { newest: number; at: Date },
): Promise<number> {
  const isReached = async (height: number) => {
    const time = await readTime(height);
    return time !== undefined && time <= at;
  };
  let [low, high] = [newest, newest + 1];
  for (let step = FIRST_STEP; low > 0 && !(await isReached(low)); step *= 2)
    [low, high] = [Math.max(0, low - step), low];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await isReached(middle)) low = middle;
    else high = middle;
  }
  return low;
}
