import { PaymentServiceError } from "../client/index.ts";
import { CliError, exitCodes } from "./cli-error.ts";

/** Returns an error as one sentence for people, without a stack trace. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof CliError) return error.message;
  if (!(error instanceof PaymentServiceError)) return innermost(error).message;
  const why = error.cause instanceof Error ? `: ${innermost(error.cause).message}` : "";
  const request = error.requestId === undefined ? "" : `, request ${error.requestId}`;
  return `${error.message}${why} (${error.code}${request})`;
}

/** Errors of `fetch` say "fetch failed"; their cause says why. */
function innermost(error: Error): Error {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return innermost(error.errors[0]);
  return error.cause instanceof Error ? innermost(error.cause) : error;
}

/** Returns the exit code of a command that an error has ended. */
export function exitCodeOf(error: unknown): number {
  return error instanceof CliError ? error.exitCode : exitCodes.failed;
}
