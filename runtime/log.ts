import { type DestinationStream, type LevelWithSilent, type LogFn, type Logger, pino } from "pino";
import { censor, describeError, errorMessage, scrubText, secretMembers, withoutSecrets } from "./redaction.ts";

export type Log = Logger;

export type LogOptions = {
  level: LevelWithSilent;
  role: string;
  /** Returns the fields of the running request or job, which are added to each line; a new object each time. */
  context?: () => object;
};

/**
 * Creates the log of a process: JSON lines on stdout, or on another stream. No line contains a key, a
 * signature, an API key, a password or raw transaction bytes: members are censored by name at any depth, errors are
 * described by an allow-list, and every finished line passes through `scrubText`.
 */
export function createLog(options: LogOptions, to?: DestinationStream): Log {
  const settings = {
    level: options.level,
    base: { role: options.role, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (fields: object) => withoutSecrets({ ...fields }),
    },
    // pino does not pass the bindings of a child logger to the formatter above, but applies these paths to them.
    redact: { paths: secretMembers.map((name) => `["${name}"]`), censor },
    ...(options.context ? { mixin: options.context } : {}),
    serializers: { err: (error: unknown) => describeError(error) },
    hooks: { logMethod, streamWrite: scrubText },
  };
  return to === undefined ? pino(settings) : pino(settings, to);
}

/** Without a message pino uses `err.message` unchanged, and viem puts the request's body into it. */
function logMethod(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const [first, message, ...rest]: readonly unknown[] = args;
  const error = errorIn(first);
  if (error === undefined) method.apply(this, args);
  else
    method.apply(this, [
      first === error ? { err: error } : first,
      typeof message === "string" ? message : errorMessage(error),
      ...rest,
    ]);
}

function errorIn(first: unknown): Error | undefined {
  if (first instanceof Error) return first;
  const inner: unknown = typeof first === "object" && first !== null && "err" in first ? first.err : undefined;
  return inner instanceof Error ? inner : undefined;
}
