import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";

type Env = Readonly<Record<string, string | undefined>>;

/** Returns the file by which tools of this user find the stack from every folder, as `pay` does (cli/find-stack.ts). */
function registrationFile(env: Env): string {
  const state = env["XDG_STATE_HOME"] || join(env["HOME"] || homedir(), ".local", "state");
  return join(state, "payment-service", "stack.json");
}

/** The path of the stack.json in the folder of a stack. */
const toContent = (dir: string) => `${JSON.stringify({ stackFile: resolve(dir, "stack.json") })}\n`;

/** Registers the stack of a folder for this user. A stack that was registered before is replaced. */
export async function registerStack(env: Env, dir: string): Promise<void> {
  const file = registrationFile(env);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}.new`;
  await writeFile(fresh, toContent(dir), { mode: 0o600 });
  await rename(fresh, file);
}

/** Removes the registration, unless another stack has replaced it. */
export async function unregisterStack(env: Env, dir: string): Promise<void> {
  const file = registrationFile(env);
  const content = await readFile(file, "utf8").catch(() => undefined);
  if (content === toContent(dir)) await rm(file, { force: true });
}
