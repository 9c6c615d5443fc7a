import { ChainError, isTransientChainError } from "../chains/errors.ts";
import { createTransientCheck } from "../runtime/transient-errors.ts";

/** Returns true for a thrown error after which a retry may succeed: a store or an endpoint of a chain is unavailable. */
export const isTransient = createTransientCheck(isTransientChainError);

/**
 * Returns that a thrown error means that no endpoint of a chain responds, or that the budget of calls to them is spent
 * (`waitMs`, milliseconds); undefined for any other error.
 */
export function findChainOutage(error: unknown): { waitMs: number | undefined } | undefined {
  if (!isTransientChainError(error)) return undefined;
  return { waitMs: error instanceof ChainError ? error.waitMs : undefined };
}
