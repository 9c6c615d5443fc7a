import { pathToFileURL } from "node:url";
import manifest from "../package.json" with { type: "json" };
import lockfile from "../package-lock.json" with { type: "json" };
import { installScripts, replaced } from "./dependency-rules.ts";

/** An entry of package-lock.json. `name` is set where an alias is installed under another name. */
export type LockedPackage = {
  name?: string;
  version?: string;
  resolved?: string;
  integrity?: string;
  hasInstallScript?: boolean;
  link?: boolean;
};

/** Returns true for the packages of this repository: the project itself, its folders, and the links to these. */
function isOwn(packages: Record<string, LockedPackage>, path: string, { link, resolved = "" }: LockedPackage): boolean {
  const isFolder = (at: string) => !/(^|\/)node_modules\//.test(at) && Object.hasOwn(packages, at);
  return isFolder(path) || (link === true && isFolder(resolved));
}

/** Returns the rule's name for a package: itself, or its scope with `*`. */
function ruleFor(name: string): string | undefined {
  const names = [name, name.replace(/\/.*$/, "/*")];
  return names.find((one) => Object.hasOwn(installScripts, one));
}

/**
 * Returns what is wrong with the packages of a lockfile, by the rules in dependency-rules.ts: install scripts that no rule
 * names, packages that are replaced, and packages that are not from a registry or have no hash. Works without a network.
 */
export function findDependencyErrors(packages: Record<string, LockedPackage>): string[] {
  const entries = Object.entries(packages).filter(([path, entry]) => !isOwn(packages, path, entry));
  const named = entries.map(([path, entry]) => ({
    ...entry,
    name: entry.name ?? path.replace(/^.*node_modules\//, ""),
  }));
  const scripted = named.filter(({ hasInstallScript }) => hasInstallScript);
  const used = new Set(scripted.map(({ name }) => ruleFor(name)));
  return [
    ...scripted.filter(({ name }) => !ruleFor(name)).map(({ name }) => `${name} has an install script without a rule`),
    ...Object.keys(installScripts)
      .filter((name) => !used.has(name))
      .map((name) => `${name} has a rule and no install script`),
    ...named.flatMap(({ name }) => {
      const rule = Object.hasOwn(replaced, name) ? replaced[name] : undefined;
      return rule ? [`${name} is installed; install ${rule.by} in its place: ${rule.reason}`] : [];
    }),
    ...named
      .filter(
        ({ integrity, resolved }) => !integrity?.startsWith("sha512-") || /^(git|file|http:)/.test(resolved ?? ""),
      )
      .map(({ name }) => `${name} is not from a registry, or has no SHA-512 hash`),
  ];
}

/** Returns the packages whose `allowScripts` in package.json differs from the rules. */
export function findAllowedScriptErrors(packages: Record<string, LockedPackage>, allowed: Record<string, boolean>) {
  const names = Object.entries(packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path, { name }]) => name ?? path.replace(/^.*node_modules\//, ""));
  return [...new Set([...names, ...Object.keys(allowed)])]
    .filter((name) => allowed[name] !== installScripts[ruleFor(name) ?? ""]?.runs)
    .map((name) => `package.json: allowScripts of ${name} differs from scripts/dependency-rules.ts`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { packages } = lockfile as { packages: Record<string, LockedPackage> };
  const errors = [...findDependencyErrors(packages), ...findAllowedScriptErrors(packages, manifest.allowScripts)];
  for (const error of errors) console.error(error);
  if (errors.length > 0) process.exitCode = 1;
  else console.log(`dependencies: ${Object.keys(packages).length - 1} packages keep the rules`);
}
