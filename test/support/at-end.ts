const endings: (() => unknown)[] = [];

/** Runs when the test file is over, last one first, whatever became of its tests. May be called anywhere in the file. */
export function atEnd(end: () => unknown): void {
  endings.push(end);
}

/** Called once by setup-file.ts. One ending that fails does not keep the others from running. */
export async function endAll(): Promise<void> {
  const errors: unknown[] = [];
  for (let end = endings.pop(); end !== undefined; end = endings.pop()) {
    try {
      await end();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0)
    throw new AggregateError(errors, `what a test file opened did not end well: ${errors.map(String).join("; ")}`);
}
