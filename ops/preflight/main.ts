import { runProgram } from "./program.ts";

const { stdout, stderr } = process;

// A reader of only the first lines (head, less) closes the pipe, which is not an error.
stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

let isAnnounced = false;

/** Shows one changing line on a terminal, and elsewhere a single line at the start. */
function showProgress(text: string): void {
  if (stderr.isTTY) stderr.write(`\r\u001b[2K${text.slice(0, stderr.columns - 1)}`);
  else if (!isAnnounced) stderr.write("checking the networks file against its chains …\n");
  isAnnounced = true;
}

process.exitCode = await runProgram(process.argv.slice(2), {
  env: process.env,
  now: () => new Date(),
  write: (text) => stdout.write(text),
  writeError: (text) => stderr.write(text),
  showProgress,
});
