import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { findFamilyBranches } from "./family-branches.ts";
import { findCircles } from "./import-circles.ts";
import { lineOf, type Source, valueImports } from "./source-text.ts";

/** The layers below `payments`, which the operator's commands and the local stack use directly too. */
const belowPayments = ["transfers", "chains", "db"];

/**
 * The modules that each module may import values from, besides itself. Nothing points up. Types may come from any module,
 * because Node removes them.
 */
export const allowedImports: Readonly<Record<string, readonly string[]>> = {
  // A package of its own, which runs in browsers too: it imports nothing of the service.
  client: [],
  // Top modules: no module imports them. `ops` has the commands that deploy contracts and create keys.
  scripts: ["db", "runtime"],
  // The command line of merchants' developers, which reaches the service only over HTTP.
  cli: ["client"],
  local: ["payments", "signer", ...belowPayments, "runtime"],
  ops: ["payments", "signer", ...belowPayments, "runtime"],
  api: ["payments", "queues", "runtime"],
  workers: ["payments", "signer", "queues", "runtime"],
  payments: [...belowPayments, "signer", "queues", "runtime"],
  transfers: ["signer", "chains", "db", "runtime"],
  // The process that holds the treasury's keys. It never reaches the service's database or Redis.
  signer: ["chains", "contracts", "runtime"],
  queues: ["runtime"],
  // `contracts` holds the compiled contracts.
  chains: ["contracts", "runtime"],
  contracts: ["runtime"],
  db: ["runtime"],
  runtime: [],
};

export type Violation = { path: string; line: number; from: string; to: string };

/** Returns true for entry points: they open what the modules share, and may import every module. */
const isEntryPoint = (path: string): boolean => path.endsWith("/main.ts");

const moduleOf = (path: string): string => path.split("/", 1)[0] ?? "";

/** Returns the value imports that are not allowed. */
export function findViolations(sources: readonly Source[]): Violation[] {
  return sources.flatMap(({ path, text }) => {
    const from = moduleOf(path);
    const allowed = allowedImports[from];
    if (allowed === undefined || isEntryPoint(path)) return [];
    return valueImports(text).flatMap(({ target, line }) => {
      if (!target.startsWith(".")) return [];
      const file = posix.join(posix.dirname(path), target);
      const to = moduleOf(file);
      // Files outside all modules, such as package.json, are allowed.
      return !file.includes("/") || to === from || allowed.includes(to) ? [] : [{ path, line, from, to }];
    });
  });
}

/**
 * Returns the places of SQL outside `db`: values of kysely, such as its template `sql`, and the first calls of a query.
 * Entry points are not exempt.
 */
export function findSql(sources: readonly Source[]): { path: string; line: number }[] {
  const query = /\.\s*(?:selectFrom|selectNoFrom|insertInto|updateTable|deleteFrom|mergeInto)\s*\(/g;
  return sources.flatMap(({ path, text }) => {
    if (moduleOf(path) === "db") return [];
    const imports = valueImports(text).filter(({ target }) => target === "kysely" || target.startsWith("kysely/"));
    const queries = [...text.matchAll(query)].map(({ index }) => ({ line: lineOf(text, index) }));
    return [...imports, ...queries].map(({ line }) => ({ path, line }));
  });
}

function readSources(): Source[] {
  const root = new URL("../", import.meta.url);
  return Object.keys(allowedImports).flatMap((module) =>
    readdirSync(new URL(module, root), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !/^(dist|node_modules)\//.test(file))
      .map((file) => `${module}/${file.replaceAll("\\", "/")}`)
      .map((path) => ({ path, text: readFileSync(new URL(path, root), "utf8") })),
  );
}

if (import.meta.main) {
  const sources = readSources();
  const violations = findViolations(sources);
  for (const { path, line, from, to } of violations)
    console.error(`${path}:${line} ${from} must not import from ${to}`);
  const branches = findFamilyBranches(sources);
  for (const { path, line, code } of branches)
    console.error(`${path}:${line} ${code} depends on the chain family: call its driver`);
  const circles = findCircles(sources);
  for (const path of circles) console.error(`${path} is in a circle of imports, which types count for too`);
  const misplaced = findSql(sources);
  for (const { path, line } of misplaced) console.error(`${path}:${line} SQL belongs in db/queries`);
  console.log(
    `imports: ${sources.length} files, ${violations.length} not allowed; ${branches.length} branches by chain family; ${circles.length} in circles; ${misplaced.length} places of SQL outside db`,
  );
  // Without any file, the check has read the wrong folder.
  if (violations.length + branches.length + circles.length + misplaced.length > 0 || sources.length === 0)
    process.exitCode = 1;
}
