import type { Command } from "commander";
import type { CredentialOptions } from "./find-credentials.ts";
import { print, printJson, type Terminal } from "./terminal.ts";

/** The options that every command has. */
export type GlobalOptions = CredentialOptions & { json?: boolean };

/** Returns the options of a command together with those of `pay` itself. */
export function readOptions<O extends object>(command: Command): O & GlobalOptions {
  return command.optsWithGlobals<O & GlobalOptions>();
}

/** Prints a result: as JSON for machines, else as lines for people. */
export function printResult(
  terminal: Terminal,
  { json }: GlobalOptions,
  value: unknown,
  lines: readonly string[],
): void {
  if (json) printJson(terminal, value, 2);
  else print(terminal, ...lines);
}
