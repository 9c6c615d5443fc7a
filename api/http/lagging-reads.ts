import type { Result } from "../../payments/error-codes.ts";
import type { ApiDeps } from "../api-deps.ts";

/**
 * Runs a read whose result may be some seconds old, which lists and statements may be: on the replica where one can serve
 * it, otherwise on the primary. The primary decides every refusal, because the replica may not know a new row yet.
 * Authentication, idempotency, and what a single object is now, are never read this way.
 */
export async function readLagging<T>(
  deps: ApiDeps,
  read: (deps: Pick<ApiDeps, "db" | "chains">) => Promise<Result<T>>,
): Promise<Result<T>> {
  return (await deps.replica?.attempt((db) => read({ ...deps, db }))) ?? read(deps);
}
