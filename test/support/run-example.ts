import { readFileSync } from "node:fs";
import { delimiter, resolve } from "node:path";
import { type Child, startChild } from "../../local/child-process.ts";
import { freePort } from "../../local/free-ports.ts";
import { waitUntil } from "../../local/wait-until.ts";
import { addCleanup } from "./cleanups.ts";
import { waitFor } from "./wait-for.ts";

export type Example = {
  /** Where the example listens. */
  url: string;
  lines: string[];
  child: Child;
};

type Manifest = { name: string; scripts: { start: string }; dependencies?: Record<string, string> };

/** Returns the package.json of an example. */
export function readManifest(name: string): Manifest {
  return JSON.parse(readFileSync(resolve("examples", name, "package.json"), "utf8")) as Manifest;
}

/** Returns what `npm start` of an example runs, without the part that connects it to the local stack. */
export function readProgram(name: string): string {
  const { start } = readManifest(name).scripts;
  return start.replace(/node \.\.\/run-locally\.js \d+ /, "");
}

/**
 * Starts an example in its folder by a line of the shell, with programs of this repository on the PATH as npm puts them
 * there. Waits until it listens, and throws when it ends before. It ends when the file is over.
 */
export async function startExample(
  name: string,
  line: string,
  { port, env, paths = [], cwd = resolve("examples", name) }: ExampleOptions,
): Promise<Example> {
  const lines: string[] = [];
  const PATH = [...paths, resolve("node_modules", ".bin"), process.env["PATH"]].join(delimiter);
  const all = { ...process.env, ...env, PATH, PORT: String(port) };
  const child = await startChild("/bin/sh", ["-c", line], {
    cwd,
    env: all,
    onLine: (text) => lines.push(text),
  });
  addCleanup(() => child.end("SIGTERM"));
  const url = `http://127.0.0.1:${port}`;
  const isListening = async () => {
    return await fetch(url, { method: "HEAD" }).then(
      () => true,
      () => child.isGone(),
    );
  };
  await waitFor(isListening, { within: 110_000, what: `${name} listens`, every: 100 });
  if (child.isGone()) {
    // The output of a process may arrive after its end.
    await waitUntil("the output", () => child.tail() !== "", { withinMs: 2_000 }).catch(() => undefined);
    throw new Error(`${name} ended: ${child.tail()}`);
  }
  return { url, lines, child };
}

type ExampleOptions = {
  port: number;
  env: Record<string, string>;
  /** Folders that come first in the PATH. */
  paths?: string[];
  /** The folder in which it starts, instead of its own. */
  cwd?: string;
};

/** Returns a free port and the address at which an example on it receives webhooks. */
export async function reservePort(): Promise<{ port: number; hooks: string }> {
  const port = await freePort();
  return { port, hooks: `http://127.0.0.1:${port}/hooks` };
}
