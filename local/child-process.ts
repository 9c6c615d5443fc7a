import { type ChildProcess, spawn } from "node:child_process";
import { withTimeout } from "../runtime/timeout.ts";
import { findProgram } from "./find-program.ts";

export type Child = {
  readonly pid: number;
  /** Settles when the process has ended; never rejects. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  isGone(): boolean;
  /** Returns its newest output, of both streams. */
  tail(): string;
  /** Sends the signal and waits for the end of the process. Kills it after `withinMs`. */
  end(signal: NodeJS.Signals, withinMs?: number): Promise<void>;
};

export type ChildOptions = {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  uid?: number | undefined;
  gid?: number | undefined;
  /** The signal that the kernel sends to the process when this process dies first. */
  orphanSignal?: NodeJS.Signals;
  onLine?: (line: string) => void;
};

const tailLength = 4_000;

/**
 * Returns a command line that makes the kernel end the program when its parent dies for any reason. Without setpriv, which
 * every Linux has and macOS lacks, the program runs unprotected.
 */
export function tiedToParent(command: string, args: readonly string[], signal: NodeJS.Signals): [string, string[]] {
  const setpriv = findProgram("setpriv");
  if (setpriv === undefined) return [command, [...args]];
  return [setpriv, ["--pdeathsig", signal.slice("SIG".length), command, ...args]];
}

/** Starts a program that ends with this process. */
export async function startChild(command: string, args: readonly string[], options: ChildOptions = {}): Promise<Child> {
  const [program, line] = tiedToParent(command, args, options.orphanSignal ?? "SIGTERM");
  const { cwd, env, uid, gid } = options;
  const child = spawn(program, line, {
    stdio: ["ignore", "pipe", "pipe"],
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    // Ctrl-C reaches the whole foreground group, but these programs must be stopped in order.
    detached: true,
  });
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
  let isGone = false;
  void ended.then(() => {
    isGone = true;
  });
  const tail = collect(child, options.onLine);
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} did not start`);
  return {
    pid,
    gone: ended,
    isGone: () => isGone,
    tail,
    async end(signal, withinMs = 10_000) {
      if (isGone) return;
      child.kill(signal);
      await withTimeout(ended, withinMs, command).catch(() => child.kill("SIGKILL"));
      await ended;
    },
  };
}

/** Reads both streams as lines. Returns a function that returns the newest text. */
function collect(child: ChildProcess, onLine: ((line: string) => void) | undefined): () => string {
  let kept = "";
  for (const stream of [child.stdout, child.stderr]) {
    let rest = "";
    stream?.setEncoding("utf8");
    stream?.on("data", (text: string) => {
      kept = (kept + text).slice(-tailLength);
      if (onLine === undefined) return;
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) onLine(line);
    });
  }
  return () => kept;
}
