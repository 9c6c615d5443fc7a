import { errorCode } from "../../runtime/redaction.ts";

/** Returns true for the error of a statement that Postgres has stopped, because it took too long. */
export const isStopped = (error: unknown): boolean => errorCode(error) === "57014";
