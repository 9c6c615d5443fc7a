/** SQLSTATE classes of what passes: connections, resources, an operator's shutdown, transactions that met. */
const passingSqlStates = /^(08|53|57P|40001|40P01|55P03|57014|25P03)/;
const passingSystemCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);
/** What pg and ioredis say without a code when a connection goes away. */
const passingWords =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Connection is closed|Stream isn't writeable|LOADING|READONLY)/;

/**
 * Makes the one judge of thrown errors: true when the same step may go through later (an RPC, Postgres or Redis that is
 * away), false when it is a bug or a misconfiguration that wants a person.
 * @param isTransientChainError what the chains say about errors of their own
 */
export function createJudge(isTransientChainError: (error: unknown) => boolean): (error: unknown) => boolean {
  return function isTransient(error: unknown): boolean {
    if (!(error instanceof Error)) return false;
    if (isTransientChainError(error)) return true;
    const code = (error as { code?: unknown }).code;
    if (typeof code === "string" && (passingSystemCodes.has(code) || passingSqlStates.test(code))) return true;
    if (error.name === "MaxRetriesPerRequestError" || passingWords.test(error.message)) return true;
    return error.cause !== undefined && isTransient(error.cause);
  };
}
