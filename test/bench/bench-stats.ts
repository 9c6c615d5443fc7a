/** Returns the value below which the given share of the sorted values lies; 0 when there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** Runs a task for each item with the given concurrency, and returns the results in the order of the items. */
export async function runPool<I, O>(
  items: readonly I[],
  concurrency: number,
  task: (item: I, index: number) => Promise<O>,
): Promise<O[]> {
  const results: O[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++)
      results[index] = await task(items[index] as I, index);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, lane));
  return results;
}

/** Prints names and values, aligned. */
export function printTable(lines: readonly (readonly [string, string])[]): void {
  console.log(`\n${lines.map(([name, value]) => `${name.padEnd(36)}${value}`).join("\n")}`);
}
