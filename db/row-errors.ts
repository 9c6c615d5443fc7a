/**
 * SQLSTATE classes of what a row's own values cause, whenever it is tried: cardinality, data, constraints, a trigger's
 * exception, check options, program limits (a value too long for an index).
 */
const rowClasses = /^(21|22|23|44|54|P0)/;
/** What pg and kysely say, without a code, of connections and pools. */
const connectionWords =
  /^(Connection terminated|timeout e|Client (has|was)|Cannot use a pool|Called end|Query read timeout|Received unexpected|driver has already)/;
const programmingErrors = new Set(["Error", "TypeError", "RangeError", "SyntaxError"]);

/**
 * Returns true for an error that is a row's own and comes back however often the row is tried: its values break a rule
 * of the database, or our code throws on it. False for whatever may pass (connections, deadlocks, timeouts, an endpoint
 * of a chain) or concerns every row alike (a missing table).
 */
export function isRowError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  if (code !== undefined) return typeof code === "string" && code.length === 5 && rowClasses.test(code);
  if (error.cause !== undefined && !isRowError(error.cause)) return false;
  return programmingErrors.has(error.name) && !connectionWords.test(error.message);
}
