import { join } from "node:path";
import { unpackDebianPackage } from "../../local/debian-packages.ts";
import { findProgram, programFrom } from "../../local/find-program.ts";

/**
 * Finds Prometheus: the program that PROMETHEUS names, one on this machine, or Debian's package, unpacked into .local. Throws an
 * error that says what to install.
 */
export async function findPrometheus(): Promise<string> {
  const installed = programFrom("PROMETHEUS") ?? findProgram("prometheus", ["/usr/bin"]);
  if (installed !== undefined) return installed;
  const root = await unpackDebianPackage("prometheus", console.log);
  const unpacked = root === undefined ? undefined : findProgram("prometheus", [join(root, "usr", "bin")]);
  if (unpacked === undefined)
    throw new Error("Prometheus was not found: install prometheus, or set PROMETHEUS to its program");
  return unpacked;
}
