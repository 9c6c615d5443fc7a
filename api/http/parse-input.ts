import { z } from "zod";
import { done, type Result, refuse, type UntimedCode } from "../../payments/error-codes.ts";

/** Shortens zod's default message, which is used where a schema has none of its own. */
function shortenMessage(message: string): string {
  // JSON calls it an object.
  const short = message.replace(/^Invalid input: /, "").replace(/^expected record/, "expected object");
  return short.replace(/^expected (.+), received undefined$/, "is missing, expected $1");
}

/** Errors in one message at most, and characters of a member's path. */
const MAX_ERRORS = 5;
const MAX_PATH = 200;

/** Returns an issue as errors: one for each unknown member, and one for any other issue. */
function listErrors(issue: z.core.$ZodIssue): { path: PropertyKey[]; message: string }[] {
  const { path } = issue;
  if (issue.code !== "unrecognized_keys") return [{ path, message: shortenMessage(issue.message) }];
  return issue.keys.map((key) => ({ path: [...path, key], message: "is not known" }));
}

/**
 * Returns the names of members that an object has beside those of its schema, as many and as long as in a message. A tolerant
 * schema ignores them.
 */
export function listUnknownMembers(schema: z.ZodType | undefined, input: unknown): string[] {
  if (!(schema instanceof z.ZodObject) || typeof input !== "object" || input === null) return [];
  const names = Object.keys(input).filter((name) => !Object.hasOwn(schema.shape, name));
  return names.slice(0, MAX_ERRORS).map((name) => name.slice(0, MAX_PATH).toWellFormed());
}

/**
 * Parses a caller's input. The refusal names each invalid member and what was expected, never the value.
 * @param whole name of the input as a whole, for an error that concerns no single member: `body`, `query`
 */
export function parseInput<S extends z.ZodType>(
  schema: S,
  input: unknown,
  { whole, code }: { whole: string; code: UntimedCode },
): Result<z.output<S>> {
  const parsed = schema.safeParse(input, { reportInput: false });
  if (parsed.success) return done(parsed.data);
  const errors = parsed.error.issues
    .flatMap(listErrors)
    .slice(0, MAX_ERRORS)
    // A name of the caller's own may be long.
    .map(({ path, message }) => `${path.join(".").slice(0, MAX_PATH) || whole}: ${message}`);
  return refuse(code, errors.join("; "));
}
