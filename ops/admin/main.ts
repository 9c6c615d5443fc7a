import { runAdmin } from "./program.ts";

// A reader of only the first lines (head, less) closes the pipe, which is not an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

// In the image the command is a bundle.
const isBundle = !import.meta.url.endsWith(".ts");

process.exitCode = await runAdmin(process.argv.slice(2), {
  env: process.env,
  name: isBundle ? "admin" : "npm run admin --",
  write: (text) => process.stdout.write(text),
  isTerminal: process.stdout.isTTY,
  writeError: (text) => process.stderr.write(text),
});
