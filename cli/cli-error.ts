/** Exit codes: the command was carried out, it failed, it was called wrongly, or Ctrl-C ended it. */
export const exitCodes = { done: 0, failed: 1, usage: 2, interrupted: 130 } as const;

/** An error for the person at the terminal: its message is one sentence, and it has no stack trace. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Returns the error of a command that was called wrongly. */
export const usageError = (message: string) => new CliError(message, exitCodes.usage);
