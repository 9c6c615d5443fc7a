import { exitCodes } from "./cli-error.ts";
import { runCommand } from "./run-command.ts";

/** Time that a command has to end after Ctrl-C, milliseconds. Most wait for one response of the service. */
const END_MS = 1_000;

const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    interrupted.abort();
    setTimeout(() => process.exit(exitCodes.interrupted), END_MS).unref();
  });
// `pay … | head` closes the output early.
process.stdout.on("error", () => process.exit(0));

process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdin: process.stdin,
  write: (text) => void process.stdout.write(text),
  writeError: (text) => void process.stderr.write(text),
  signal: interrupted.signal,
});
