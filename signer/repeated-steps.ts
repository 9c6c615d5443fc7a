import type { Log } from "../runtime/log.ts";
import { describeBriefly } from "../runtime/redaction.ts";

/**
 * Returns a function that runs these steps in order, for a timer. A step that throws, for example while the disk of the store is
 * full, keeps neither the other steps nor the process from running. It is logged when it begins to fail, and when the error changes.
 */
export function createRepeatedSteps(log: Pick<Log, "error">, steps: Readonly<Record<string, () => void>>): () => void {
  const errors = new Map<string, string>();
  return () => {
    for (const [step, run] of Object.entries(steps)) {
      try {
        run();
        errors.delete(step);
      } catch (err) {
        const error = describeBriefly(err);
        if (errors.get(step) !== error) log.error({ err, step }, "a step failed and is repeated until it succeeds");
        errors.set(step, error);
      }
    }
  };
}
