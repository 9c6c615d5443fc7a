const cleanups: (() => unknown)[] = [];

/**
 * Registers a cleanup that runs when the test file is over, whether its tests passed or not. Cleanups run last first.
 */
export function addCleanup(end: () => unknown): void {
  cleanups.push(end);
}

/** Runs all cleanups, even when some of them fail. Throws their errors together. Called once by setup-file.ts. */
export async function runCleanups(): Promise<void> {
  const errors: unknown[] = [];
  for (let end = cleanups.pop(); end !== undefined; end = cleanups.pop()) {
    try {
      await end();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0)
    throw new AggregateError(errors, `cleanups of the test file failed: ${errors.map(String).join("; ")}`);
}
