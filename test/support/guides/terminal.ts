import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

export type Terminal = {
  /** Returns everything that has appeared so far, of both streams. */
  output(): string;
  /** Types commands. They run one after the other, and a failure ends the shell. */
  type(commands: string): Promise<void>;
  /** Returns what became of the commands. */
  state(): "running" | "done" | "failed";
  /** Ends the shell and everything that runs in it. */
  close(): Promise<void>;
};

/** Opens a shell that keeps its folder and its variables from one block of commands to the next. */
export function openTerminal(options: { cwd: string; env: NodeJS.ProcessEnv; scratch: string }): Terminal {
  const { cwd, env, scratch } = options;
  const shell = spawn("bash", ["--noprofile", "--norc"], { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
  const gone = new Promise<void>((resolve) => shell.once("close", () => resolve()));
  // One stream for both, so that what commands write to either appears before the mark of their end.
  shell.stdin.write("exec 2>&1\n");
  let output = "";
  let mark: string | undefined;
  const read = (text: string): void => {
    output += text;
    if (mark === undefined || !output.endsWith(`${mark}\n`)) return;
    output = output.slice(0, -mark.length - 1);
    if (output !== "" && !output.endsWith("\n")) output += "\n";
    mark = undefined;
  };
  for (const stream of [shell.stdout, shell.stderr]) stream.setEncoding("utf8").on("data", read);
  // The shell is gone when a command has failed; `state` reports that.
  shell.stdin.on("error", () => undefined);
  return {
    output: () => output,
    async type(commands) {
      mark = `done-${randomUUID()}`;
      const file = join(scratch, `${mark}.sh`);
      await writeFile(file, commands);
      // A program that keeps running must not read the lines that are typed later.
      shell.stdin.write(`set -e; . ${file} < /dev/null; echo ${mark}\n`);
    },
    state: () => (shell.exitCode === null ? (mark === undefined ? "done" : "running") : "failed"),
    async close() {
      if (shell.exitCode === null && shell.pid !== undefined) process.kill(-shell.pid, "SIGTERM");
      await gone;
    },
  };
}
