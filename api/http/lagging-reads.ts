import type { Result } from "../../payments/error-codes.ts";
import type { ApiDeps } from "../api-deps.ts";

/** The sentence about `readLagging` in the descriptions of lists. */
export const MAY_LAG = "Changes of the last 5 seconds can be missing.";

/** How long after a moment everything until then is certainly committed and replayed, milliseconds. */
const SETTLED_AFTER_MS = 60_000;

/**
 * Runs a read whose result may be some seconds old, which lists and statements may be: on the replica where one can serve
 * it, otherwise on the primary. The primary decides every refusal, because the replica may not know a new row yet.
 * Authentication, idempotency, and what a single object is now, are never read this way.
 * @param options.until the end of the period that is read. The caller takes a period that has ended as complete, so the
 *   primary serves it until a minute after its end.
 * @param options.mustBeCurrent true for a read by which callers find out whether something has happened: the
 *   primary serves it
 */
export async function readLagging<T>(
  deps: ApiDeps,
  read: (deps: Pick<ApiDeps, "db" | "chains" | "assetUnits">) => Promise<Result<T>>,
  { until, mustBeCurrent = false }: { until?: Date | undefined; mustBeCurrent?: boolean } = {},
): Promise<Result<T>> {
  const isSettled = until === undefined || until.getTime() + SETTLED_AFTER_MS < deps.now().getTime();
  const replica = isSettled && !mustBeCurrent ? deps.replica : undefined;
  return (await replica?.attempt((db) => read({ ...deps, db }))) ?? read(deps);
}
