import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { addCleanup } from "./cleanups.ts";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "../..");

/**
 * Packs the client in a copy of the repository as people do, which builds it, and installs the archive into an empty folder without a
 * network. Returns the folder, and the paths in the archive.
 */
export async function installPackedClient(): Promise<{ folder: string; files: string[] }> {
  const scratch = await mkdtemp(join(tmpdir(), "client-"));
  addCleanup(() => rm(scratch, { recursive: true }));
  const [copy, folder] = [join(scratch, "copy"), join(scratch, "shop")];
  await mkdir(folder);
  const isSource = (path: string) => !path.endsWith("/dist");
  for (const part of ["client", "scripts/build-packages.ts", "package.json", "tsconfig.json"])
    await cp(join(root, part), join(copy, part), { recursive: true, filter: isSource });
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  const source = join(copy, "client");
  const npm = (cwd: string, ...args: string[]) =>
    run("npm", [...args, "--offline", "--cache", join(scratch, "cache"), "--no-audit", "--no-fund"], { cwd });
  const { stdout } = await npm(source, "pack", "--json", "--ignore-scripts=false");
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }));
  await npm(folder, "install", join(source, packed.filename));
  return { folder, files: packed.files.map(({ path }) => path) };
}
