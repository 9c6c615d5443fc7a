import type { Readable } from "node:stream";
import { cleanLine, toCleanJson } from "./clean-line.ts";

/** What a command reads and writes. main.ts takes it from the process; tests make their own. */
export type Terminal = {
  env: Readonly<Record<string, string | undefined>>;
  /** The current folder. */
  cwd: string;
  stdin: Readable & { isTTY?: boolean };
  /** Writes to the standard output, without a line feed. */
  write(text: string): void;
  /** Writes to the standard error output, without a line feed. */
  writeError(text: string): void;
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
};

/** Writes lines for people to the standard output. Text of the service among them cannot control the terminal. */
export function print(terminal: Terminal, ...lines: readonly string[]): void {
  terminal.write(lines.map((line) => `${cleanLine(line)}\n`).join(""));
}

/**
 * Writes a value as JSON to the standard output.
 * @param indent spaces; undefined writes one line
 */
export function printJson(terminal: Terminal, value: unknown, indent?: number): void {
  terminal.write(`${toCleanJson(value, indent)}\n`);
}

/** Writes a line to the standard error output, for people who watch the command run. */
export function printNote(terminal: Terminal, line: string): void {
  terminal.writeError(`${cleanLine(line)}\n`);
}
