import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { CliError, exitCodes } from "./cli-error.ts";
import type { Terminal } from "./terminal.ts";

/** Asks the person for a line, and shows what they type. Returns it without spaces around it. */
export function readLine(terminal: Terminal, prompt: string): Promise<string> {
  return ask(terminal, prompt, (text) => terminal.writeError(text));
}

/** Asks for a secret without echo; without a terminal, it is the first line of the standard input. */
export async function readSecret(terminal: Terminal, prompt: string): Promise<string> {
  if (!terminal.stdin.isTTY) return ask(terminal, "", () => undefined);
  terminal.writeError(prompt);
  try {
    return await ask(terminal, "", () => undefined);
  } finally {
    terminal.writeError("\n");
  }
}

async function ask({ stdin }: Terminal, prompt: string, echo: (text: string) => void): Promise<string> {
  const output = new Writable({
    write(chunk, _encoding, done) {
      echo(String(chunk));
      done();
    },
  });
  const lines = createInterface({ input: stdin, output, prompt, terminal: stdin.isTTY ?? false });
  try {
    return await new Promise<string>((resolve, reject) => {
      // Not `question`, which does not return a last line without a line feed.
      lines.once("line", (line) => resolve(line.trim()));
      // A terminal in raw mode does not send SIGINT.
      lines.once("SIGINT", () => reject(new CliError("interrupted", exitCodes.interrupted)));
      lines.once("close", () => reject(new CliError("the input has ended")));
      lines.prompt();
    });
  } finally {
    lines.close();
  }
}
