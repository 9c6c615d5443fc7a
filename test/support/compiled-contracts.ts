import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Compiled, compile } from "../../contracts/compile.ts";

const sources = new URL("./contracts/", import.meta.url);

/** Compiles a file of test/support/contracts, or returns what a process of this checkout compiled from the same source. */
export function compileOnce(name: string): Record<string, Compiled> {
  const source = new URL(name, sources);
  const settings = readFileSync(new URL("../../contracts/compile.ts", import.meta.url));
  const hash = createHash("sha256").update(readFileSync(source)).update(settings).digest("hex");
  const folder = resolve(".local", "compiled-contracts");
  const file = join(folder, `${hash}.json`);
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as Record<string, Compiled>;
  const fresh = compile(source);
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${file}.${process.pid}`, JSON.stringify(fresh));
  renameSync(`${file}.${process.pid}`, file);
  return fresh;
}
