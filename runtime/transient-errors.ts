/**
 * SQLSTATEs of transient errors: connections, resources, an operator's shutdown, conflicts between transactions, a server
 * that a failover has made read-only, and statements that a pooler has not passed on as prepared.
 */
const transientSqlStates = /^(08|53|57P|40001|40P01|55P03|57014|25P03|25006|26000|42P05)/;
/** Those of them that one row may cause while the store serves others: a conflict, a deadlock, a lock that is held for long. */
const sqlStatesOfOneRow = /^(40001|40P01|55P03|57014)$/;
const transientSystemCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);
/** Messages of errors without a code that pg and ioredis throw when a connection is lost. */
const transientMessages =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Connection is closed|Command timed out|Stream isn't writeable|LOADING|READONLY|Socket timeout|MASTERDOWN|NOREPLICAS|UNBLOCKED|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|Too many Cluster redirections|Cluster isn't ready|None of startup nodes is available|Failed to refresh slots cache|All sentinels are unreachable)/;

/**
 * Returns the function that decides about thrown errors. It returns true when a later retry can succeed (an RPC endpoint,
 * Postgres or Redis is unavailable), and false for a bug or a misconfiguration, which needs an operator.
 * @param isTransientChainError decides about errors of the chains module
 */
export function createTransientCheck(isTransientChainError: (error: unknown) => boolean): (error: unknown) => boolean {
  return function isTransient(error: unknown): boolean {
    if (!(error instanceof Error)) return false;
    if (isTransientChainError(error)) return true;
    const code = "code" in error ? error.code : undefined;
    if (typeof code === "string" && (transientSystemCodes.has(code) || transientSqlStates.test(code))) return true;
    if (error.name === "MaxRetriesPerRequestError" || transientMessages.test(error.message)) return true;
    return error.cause !== undefined && isTransient(error.cause);
  };
}

/** Returns true for a transient error that a single row may have caused. Work on other rows may succeed meanwhile. */
export function isOneRows(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && sqlStatesOfOneRow.test(String(error.code))) || isOneRows(error.cause);
}
