import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { externalPackages } from "./build.ts";

type Manifest = Partial<Record<"dependencies" | "optionalDependencies" | "peerDependencies", Record<string, string>>>;

/** What packages contain for developers. Only folders at the top of a package: deeper ones may be its code. */
const unneeded = [
  /\.(map|markdown|md|[cm]?tsx?|tsbuildinfo)$/,
  /^(\.github|benchmarks?|docs?|examples?|tests?)(\/|$)/,
  // Compiled code of other systems, and the sources of compiled code.
  /^prebuilds\/(android|darwin|win32)/,
  /\.(c|cc|cpp|h|gyp|gypi)$/,
];

/**
 * Copies the packages that the built programs load from node_modules, with what these need, to `<to>/node_modules`. Throws when
 * a package that is not optional is missing.
 * @param project the folder whose node_modules is read
 */
export function copyPackages(project: string, to: string): string[] {
  const root = resolve(project);
  const folders = listFolders(root);
  for (const folder of folders) {
    const target = join(to, relative(root, folder));
    mkdirSync(dirname(target), { recursive: true });
    cpSync(folder, target, { recursive: true, filter: (path) => isNeeded(folder, path) });
  }
  return folders.map((folder) => relative(join(root, "node_modules"), folder));
}

function isNeeded(folder: string, path: string): boolean {
  const within = relative(folder, path);
  // Packages of a package are in the list themselves if something needs them.
  return within === "" || (within !== "node_modules" && !unneeded.some((pattern) => pattern.test(within)));
}

/** Returns the folders of the external packages and of everything that they depend on. */
function listFolders(root: string): string[] {
  const found = new Set<string>();
  const visit = (name: string, from: string, isOptional: boolean): void => {
    const folder = findFolder(name, from, root);
    if (folder === undefined && !isOptional) throw new Error(`the package ${name} is not installed`);
    if (folder === undefined || found.has(folder)) return;
    found.add(folder);
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
    const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = manifest;
    for (const one of Object.keys(dependencies)) visit(one, folder, Object.hasOwn(optionalDependencies, one));
    // A peer that is not installed is not used either.
    for (const one of Object.keys({ ...optionalDependencies, ...peerDependencies })) visit(one, folder, true);
  };
  for (const name of externalPackages.flatMap((pattern) => expand(pattern, root))) visit(name, root, true);
  return [...found].toSorted();
}

/** Returns the names that a pattern of `externalPackages` stands for. */
function expand(pattern: string, root: string): string[] {
  if (!pattern.endsWith("/*")) return [pattern];
  const scope = pattern.slice(0, -2);
  return readdirSync(join(root, "node_modules", scope)).map((name) => `${scope}/${name}`);
}

/** Returns the folder from which Node loads a package that `from` requires. */
function findFolder(name: string, from: string, root: string): string | undefined {
  const folder = join(from, "node_modules", name);
  if (existsSync(join(folder, "package.json"))) return folder;
  return from === root ? undefined : findFolder(name, dirname(from), root);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const to = process.argv[2];
  if (to === undefined) throw new Error("usage: node scripts/copy-packages.ts <folder>");
  console.log(`copied ${copyPackages(fileURLToPath(new URL("../", import.meta.url)), to).join(", ")}`);
}
