import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { unpackDebianPackage } from "../../local/debian-packages.ts";
import { findProgram, programFrom } from "../../local/find-program.ts";

/** A compiler or interpreter, and its additional environment variables. */
export type Language = { program: string; env: Record<string, string> };

/** Finds Python 3. Throws an error that says what to install. */
export function findPython(): Language {
  const program = programFrom("PYTHON") ?? findProgram("python3", ["/usr/bin"]);
  if (program === undefined) throw new Error("Python was not found: install python3, or set PYTHON to its program");
  return { program, env: { PYTHONDONTWRITEBYTECODE: "1" } };
}

/**
 * Finds Go: the program that GO names, one on this machine, or Debian's package, unpacked into .local. Throws an error that says
 * what to install. Its builds stay in .local and download nothing.
 */
export async function findGo(): Promise<Language> {
  const GOCACHE = resolve(".local", "go-cache");
  await mkdir(GOCACHE, { recursive: true });
  const env = { GOCACHE, GOPROXY: "off", GOTOOLCHAIN: "local", GOFLAGS: "-buildvcs=false" };
  const installed = programFrom("GO") ?? findProgram("go", ["/usr/bin", "/usr/local/go/bin", "/usr/lib/go/bin"]);
  if (installed !== undefined) return { program: installed, env };
  const root = await unpackDebianPackage("golang-go", console.log);
  const unpacked = root === undefined ? undefined : findProgram("go", [join(root, "usr", "bin")]);
  if (root === undefined || unpacked === undefined)
    throw new Error("Go was not found: install golang-go (or Go 1.19 or newer), or set GO to its program");
  return { program: unpacked, env: { ...env, GOROOT: join(root, "usr", "lib", "go") } };
}
