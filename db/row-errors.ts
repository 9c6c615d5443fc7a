/**
 * SQLSTATE classes of errors that a row's own values cause on every attempt: cardinality, data, constraints, an exception
 * of a trigger, check options, program limits (a value too long for an index).
 */
const rowClasses = /^(21|22|23|44|54|P0)/;
/** Messages of pg and kysely about connections and pools, whose errors carry no code. */
const connectionWords =
  /^(Connection terminated|timeout e|Client (has|was)|Cannot use a pool|Called end|Query read timeout|Received unexpected|driver has already)/;
const programmingErrors = new Set(["Error", "TypeError", "RangeError", "SyntaxError"]);

/**
 * Returns true for an error that a row causes on every attempt: its values violate a rule of the database, or our code
 * throws on it. Returns false for transient errors (connections, deadlocks, timeouts, an endpoint of a chain) and for
 * errors that concern every row (a missing table).
 */
export function isRowError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? error.code : undefined;
  if (code !== undefined) return typeof code === "string" && code.length === 5 && rowClasses.test(code);
  if (error.cause !== undefined && !isRowError(error.cause)) return false;
  return programmingErrors.has(error.name) && !connectionWords.test(error.message);
}
