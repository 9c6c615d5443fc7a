import type { z } from "zod";
import { done, type ErrorCode, type Result, refuse } from "../payments/errors.ts";

/** What the library says where a schema has no words of its own. */
function inPlainWords(message: string): string {
  const said = message.replace(/^Invalid input: /, "");
  return said.replace(/^expected (.+), received undefined$/, "is missing, expected $1");
}

/** Faults told in one message at most. */
const MOST_FAULTS = 5;

/**
 * Parses what a caller sent. A refusal names each member that does not fit and what was expected there, never the
 * value.
 * @param whole what the input is called when it is wrong as a whole: `body`, `query`
 */
export function parseInput<S extends z.ZodType>(
  schema: S,
  input: unknown,
  { whole, code }: { whole: string; code: ErrorCode },
): Result<z.output<S>> {
  const parsed = schema.safeParse(input, { reportInput: false });
  if (parsed.success) return done(parsed.data);
  const faults = parsed.error.issues
    .slice(0, MOST_FAULTS)
    .map((issue) => `${issue.path.join(".") || whole}: ${inPlainWords(issue.message)}`);
  return refuse(code, faults.join("; "));
}
