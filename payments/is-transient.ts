import { isTransientChainError } from "../chains/errors.ts";
import { createTransientCheck } from "../runtime/transient-errors.ts";

/** Returns true for a thrown error after which a retry may succeed: a store or an endpoint of a chain is unavailable. */
export const isTransient = createTransientCheck(isTransientChainError);
