import { ConfigError } from "./config.ts";
import { createLog } from "./log.ts";
import { describeBriefly } from "./redaction.ts";

/**
 * Logs why a process cannot start and ends it with code 1. Its output is one JSON line like every other line of a process; the
 * message of a configuration error says everything, so that line has no stack.
 */
export function failToStart(role: string, error: unknown): never {
  const log = createLog({ level: "fatal", role });
  if (error instanceof ConfigError) log.fatal(error.message);
  else log.fatal({ err: error }, describeBriefly(error));
  process.exit(1);
}
