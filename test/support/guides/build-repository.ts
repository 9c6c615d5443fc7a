import { cp, rm, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { buildPackage } from "../../../scripts/build-packages.ts";
import { addCleanup } from "../cleanups.ts";

/**
 * Builds the packages that readers install. Returns a folder that stands for this repository in guides, so that a test neither
 * uses stale packages nor replaces those that others use. Its `.local` is the folder of the stack.
 */
export async function buildRepository(stackDir: string): Promise<string> {
  const folder = await makeScratch("guides-repository");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  for (const file of ["client/package.json", "cli/package.json", "cli/pay.js"]) await cp(file, join(folder, file));
  await buildPackage({ folder: "client" }, join(folder, "client", "dist"));
  await buildPackage({ folder: "cli", programs: { pay: "main.ts" } }, join(folder, "cli", "dist"));
  await symlink(resolve("node_modules"), join(folder, "node_modules"));
  await symlink(stackDir, join(folder, ".local"));
  return folder;
}
