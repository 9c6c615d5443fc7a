import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";

/** Which rooms a room may import values from. Types may come from anywhere: they are gone when the code runs. */
export const arrows: Readonly<Record<string, readonly string[]>> = {
  api: ["payments", "queues"],
  workers: ["payments", "queues"],
  payments: ["transfers", "chains", "db"],
  transfers: ["chains", "db"],
  queues: [],
  // The compiled Collector.
  chains: ["contracts"],
  contracts: [],
  db: [],
  ops: [],
};

/** Pure functions that import nothing: every room may use them. */
const forAll: ReadonlySet<string> = new Set(["ops/clean-text.ts", "ops/timeout.ts"]);

export type Source = { path: string; text: string };
export type Violation = { path: string; line: number; from: string; to: string };

/** Whatever puts the parts together may see them all: the entry points, the command line and the local stack. */
const seesEverything = (path: string): boolean =>
  path.endsWith("/main.ts") || path.startsWith("ops/local/") || path.startsWith("ops/admin/");

const roomOf = (path: string): string => path.split("/", 1)[0] ?? "";

/** Imports of values that go against the arrows. Paths are relative to the project, with forward slashes. */
export function findViolations(sources: readonly Source[]): Violation[] {
  return sources.flatMap(({ path, text }) => {
    const from = roomOf(path);
    const allowed = arrows[from];
    if (allowed === undefined || seesEverything(path)) return [];
    return valueImports(text).flatMap(({ target, line }) => {
      if (!target.startsWith(".")) return [];
      const file = posix.join(posix.dirname(path), target);
      const to = roomOf(file);
      // Files beside the rooms, such as package.json, belong to nobody.
      return !file.includes("/") || to === from || allowed.includes(to) || forAll.has(file)
        ? []
        : [{ path, line, from, to }];
    });
  });
}

/**
 * `import { type A } from` counts as a value: Node strips the name and still loads the file. Only `import type` is
 * gone altogether.
 */
function valueImports(text: string): { target: string; line: number }[] {
  const statement = /^[ \t]*(?:import|export)\b(?!\s+type\b)[^;"'`()]*?\bfrom\s*["']([^"']+)["']/gm;
  const bare = /^[ \t]*import\s*["']([^"']+)["']/gm;
  const dynamic = /\bimport\(\s*["']([^"']+)["']/g;
  return [statement, bare, dynamic].flatMap((pattern) =>
    [...text.matchAll(pattern)].map((match) => ({
      target: match[1] ?? "",
      line: text.slice(0, match.index).split("\n").length,
    })),
  );
}

function readSources(): Source[] {
  const root = new URL("../", import.meta.url);
  return Object.keys(arrows).flatMap((room) =>
    readdirSync(new URL(room, root), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => `${room}/${file.replaceAll("\\", "/")}`)
      .map((path) => ({ path, text: readFileSync(new URL(path, root), "utf8") })),
  );
}

if (import.meta.main) {
  const sources = readSources();
  const violations = findViolations(sources);
  for (const { path, line, from, to } of violations)
    console.error(`${path}:${line} ${from} must not import from ${to}`);
  console.log(`arrows: ${sources.length} files, ${violations.length} against the arrows`);
  // No file at all means that the check looked in the wrong place.
  if (violations.length > 0 || sources.length === 0) process.exitCode = 1;
}
