import { isOneRows } from "./transient-errors.ts";

/**
 * Runs a step for each item, one after the other. An item that fails does not keep the next ones from running: the first error
 * is thrown after them. A store that is unavailable ends the run, because the next items would wait for it and fail, too. A
 * transient error that one row may have caused does not end it: the same item may be the first of every run.
 * @param isTransient returns true for an error of a store or an endpoint that is unavailable
 */
export async function runEach<T>(
  items: Iterable<T>,
  step: (item: T) => Promise<unknown>,
  { isTransient }: { isTransient: (error: unknown) => boolean },
): Promise<void> {
  const errors: unknown[] = [];
  for (const item of items) {
    try {
      await step(item);
    } catch (error) {
      errors.push(error);
      if (isTransient(error) && !isOneRows(error)) break;
    }
  }
  if (errors.length > 0) throw errors[0];
}
