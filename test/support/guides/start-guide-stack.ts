import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startChild } from "../../../local/child-process.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { findRunningStack, type StackFile } from "../../../local/stack-file.ts";
import { readSettings, withFreePorts } from "../../../local/stack-settings.ts";
import { builtService } from "../built-service.ts";
import { addCleanup } from "../cleanups.ts";
import { waitFor } from "../wait-for.ts";

/**
 * Starts the stack as `npm start` does, but from the built service, for a reader whose home is an empty folder. Returns the
 * reader's environment, by which `pay` finds the stack.
 */
export async function startGuideStack(): Promise<{ stack: StackFile; dir: string; env: Record<string, string> }> {
  const home = await makeScratch("guides-home");
  addCleanup(() => rm(home, { recursive: true, force: true }));
  const screening = join(home, "screening.txt");
  await writeFile(screening, "");
  const dir = join(home, "stack");
  const settings = await withFreePorts(readSettings({ STACK_DIR: dir, WORKERS: "1" }));
  const variables = Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)]));
  const env = { HOME: home, XDG_STATE_HOME: "", XDG_CONFIG_HOME: "", STACK_DIR: dir, SCREENING_LIST_FILE: screening };
  const child = await startChild(process.execPath, ["local/start-stack.ts", "--build", builtService], {
    env: { ...process.env, ...variables, ...env },
  });
  addCleanup(() => child.end("SIGTERM", 60_000));
  const find = async () => {
    if (child.isGone()) throw new Error(`the stack has ended: ${child.tail()}`);
    return await findRunningStack(dir);
  };
  return { stack: await waitFor(find, { within: 90_000, every: 200, what: "the stack is up" }), dir, env };
}
