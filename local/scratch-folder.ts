import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

export type Runner = { uid: number; gid: number };

const prefix = "payment-service-";

/**
 * Creates a temporary folder in `parent`, or else in the system's temporary folder. Later runs remove it when this process is
 * gone. With `runner` it belongs to that user and is in a place that the user can reach.
 */
export async function makeScratch(name: string, options: { parent?: string; runner?: Runner } = {}): Promise<string> {
  const wanted = options.parent === undefined ? undefined : resolve(options.parent);
  const reachable = wanted !== undefined && (options.runner === undefined || (await isReachable(wanted)));
  const parent = reachable ? wanted : tmpdir();
  await mkdir(parent, { recursive: true });
  await removeAbandoned(parent);
  const folder = await mkdtemp(join(parent, `${prefix}${process.pid}-${name}-`));
  await chmod(folder, 0o700);
  if (options.runner !== undefined) await chown(folder, options.runner.uid, options.runner.gid);
  return folder;
}

/** Returns true when users other than the owner may enter every existing folder on the path. */
export async function isReachable(folder: string): Promise<boolean> {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const found = await stat(at).catch(() => undefined);
    if (found !== undefined && (found.mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

/** Removes the folders of processes that have died without removing them (kill -9, a power loss). */
async function removeAbandoned(parent: string): Promise<void> {
  for (const entry of await readdir(parent)) {
    const owner = entry.startsWith(prefix) ? Number(entry.slice(prefix.length).split("-", 1)[0]) : Number.NaN;
    if (!Number.isInteger(owner) || isAlive(owner)) continue;
    await rm(join(parent, entry), { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Returns true while a process with this id runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it runs as another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Returns the user that Postgres runs as when this process is root, or undefined. Postgres refuses to run as root. */
export async function unprivilegedUser(): Promise<Runner | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const users = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"));
  for (const wanted of ["postgres", "nobody"]) {
    const user = users.find(([name]) => name === wanted);
    if (user !== undefined) return { uid: Number(user[2]), gid: Number(user[3]) };
  }
  throw new Error("Postgres does not run as root, and /etc/passwd has neither the user postgres nor nobody");
}
