/** Takes steps one after the other, each also when one before it has failed. Throws what failed first, after all of them. */
export async function attemptAll(steps: Iterable<() => Promise<unknown>>): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}
