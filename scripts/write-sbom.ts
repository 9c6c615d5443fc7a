import { pathToFileURL } from "node:url";
import lockfile from "../package-lock.json" with { type: "json" };

/** An entry of package-lock.json. */
type Locked = {
  name?: string;
  version?: string;
  license?: string;
  integrity?: string;
  dev?: boolean;
  /** True for a folder of this repository. */
  link?: boolean;
  optional?: boolean;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
};
type Packages = Record<string, Locked>;

const FOLDER = "node_modules/";
const nameOf = (path: string, { name }: Locked) => name ?? path.slice(path.lastIndexOf(FOLDER) + FOLDER.length);
const toPurl = (path: string, entry: Locked) => `pkg:npm/${nameOf(path, entry).replace("@", "%40")}@${entry.version}`;

/** Returns the path of a package as Node finds it from another one: in the nearest folder above. */
function resolve(packages: Packages, from: string, name: string): string | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf(`/${FOLDER}`)))) {
    const path = at === "" ? `${FOLDER}${name}` : `${at}/${FOLDER}${name}`;
    if (packages[path] !== undefined) return path;
    if (at === "") return undefined;
    if (!at.includes(`/${FOLDER}`)) at = "";
  }
}

function toComponent(path: string, entry: Locked) {
  const [algorithm, hash = ""] = entry.integrity?.split("-") ?? [];
  return {
    type: "library",
    "bom-ref": path,
    name: nameOf(path, entry),
    version: entry.version,
    scope: entry.optional ? "optional" : "required",
    purl: toPurl(path, entry),
    ...(algorithm === "sha512"
      ? { hashes: [{ alg: "SHA-512", content: Buffer.from(hash, "base64").toString("hex") }] }
      : {}),
    ...(entry.license ? { licenses: [{ expression: entry.license }] } : {}),
  };
}

/**
 * Returns the bill of materials of a lockfile (CycloneDX 1.6): every package that production can load, with its version,
 * hash, licence and dependencies. Packages that only development uses are left out. `npm sbom` leaves out shared ones too.
 */
export function buildSbom(packages: Packages) {
  const listed = Object.entries(packages).filter(([path, { dev, link }]) => path !== "" && !dev && !link);
  const root = packages[""] ?? {};
  const dependsOn = (path: string, entry: Locked) =>
    Object.keys({ ...entry.dependencies, ...entry.optionalDependencies, ...entry.peerDependencies })
      .flatMap((name) => resolve(packages, path, name) ?? [])
      .filter((found) => !packages[found]?.dev);
  const application = { type: "application", "bom-ref": "root", name: root.name, version: root.version };
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: application },
    components: listed.map(([path, entry]) => toComponent(path, entry)),
    dependencies: [
      { ref: "root", dependsOn: dependsOn("", root) },
      ...listed.map(([path, entry]) => ({ ref: path, dependsOn: [...new Set(dependsOn(path, entry))] })),
    ],
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  console.log(JSON.stringify(buildSbom(lockfile.packages as Packages), null, 2));
