import { runEach } from "../runtime/run-each.ts";

/** Runs steps one after the other, and continues after a failure. Throws the first error after the last step. */
export async function attemptAll(steps: Iterable<() => Promise<unknown>>): Promise<void> {
  await runEach(steps, (step) => step(), { isTransient: () => false });
}
