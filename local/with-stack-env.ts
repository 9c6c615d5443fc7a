import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

// Runs a program with the environment of the local stack, when there is one: `node local/with-stack-env.ts PROGRAM …`.
// Node's own option prints a line when the file is missing.
const file = resolve(process.env["STACK_DIR"] || ".local", "env");
if (existsSync(file)) process.loadEnvFile(file);
const [program = ""] = process.argv.splice(2, 1);
await import(pathToFileURL(resolve(program)).href);
