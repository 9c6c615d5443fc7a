import { Readable } from "node:stream";
import { runCommand } from "../../cli/run-command.ts";

type Place = { cwd: string; env: Record<string, string> };

/**
 * Starts `pay` in this process, without the environment of the test. `end` acts as Ctrl-C.
 * @param input the standard input; a terminal shows what its program writes, and nothing else
 */
export function startPay(args: readonly string[], { cwd, env }: Place, input = "", { isTTY = false } = {}) {
  const interrupted = new AbortController();
  const written = { out: "", err: "" };
  const code = runCommand(args, {
    env,
    cwd,
    stdin: Object.assign(Readable.from([input]), { isTTY }),
    write: (text) => {
      written.out += text;
    },
    writeError: (text) => {
      written.err += text;
    },
    signal: interrupted.signal,
  });
  return { written, code, end: () => interrupted.abort() };
}

/** Runs `pay` to its end. Returns its exit code and what it has written. */
export async function runPay(...args: Parameters<typeof startPay>) {
  const { written, code } = startPay(...args);
  return { code: await code, ...written };
}
