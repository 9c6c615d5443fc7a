import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../", import.meta.url));

/** A package of this repository that is published, and how its `dist` is made. */
type Package = {
  folder: string;
  /** Programs, by the names of their files in `dist`: each is bundled with everything that it imports, for Node 20. */
  programs?: Record<string, string>;
};

/** In the order of their builds: a package is built after those that it imports. */
const packages: readonly Package[] = [{ folder: "client" }, { folder: "cli", programs: { pay: "main.ts" } }];

/**
 * Writes a package's compiled modules with their declarations, or its bundled programs.
 * @param outdir the folder to write, which is emptied; the package's `dist` when left out
 */
export async function buildPackage({ folder, programs }: Package, outdir = join(root, folder, "dist")): Promise<void> {
  const at = join(root, folder);
  await rm(outdir, { recursive: true, force: true });
  if (programs) {
    const output = { outdir, bundle: true, format: "esm", platform: "node", target: "node20" } as const;
    await build({ absWorkingDir: at, entryPoints: programs, ...output, logLevel: "warning" });
    return;
  }
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const compiled = promisify(execFile)(process.execPath, [tsc, "-p", at, "--outDir", outdir]);
  await compiled.catch(({ stdout }: { stdout: string }) => {
    throw new Error(`${folder} does not compile:\n${stdout}`);
  });
}

// The folders to build are arguments; without one, all are built.
const named = process.argv.slice(2);
if (import.meta.main)
  for (const one of packages) if (named.length === 0 || named.includes(one.folder)) await buildPackage(one);
