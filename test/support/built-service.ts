import { readdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildPrograms } from "../../scripts/build.ts";
import { allowedImports } from "../../scripts/check-imports.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The folder of the build that tests, fault runs and benchmarks start, as production starts its own (scripts/build.ts). */
export const builtService = join(root, ".local", "dist");

/** Builds the service into that folder, unless no source has changed since the last build. */
export async function buildService(): Promise<void> {
  const stamp = join(builtService, "api.js");
  const begun = new Date();
  const builtAt = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (newestChange() < builtAt) return;
  // Processes would not use source maps without --enable-source-maps, which costs 0.2 s and 60 MB per process.
  await buildPrograms(builtService, { sourcemap: false });
  // A file that has changed since the build began counts as changed.
  utimesSync(stamp, begun, begun);
}

/** Returns when a source file, or the list of packages, has last changed, in milliseconds since 1970. */
function newestChange(): number {
  const paths = [...Object.keys(allowedImports), "package-lock.json"].map((path) => join(root, path));
  const folders = paths.filter((path) => statSync(path).isDirectory());
  // A folder changes when a file in it is deleted or renamed.
  const inside = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => join(folder, path)),
  );
  return Math.max(...[...paths, ...inside].map((path) => statSync(path).mtimeMs));
}
