import { rmSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createProgress } from "../../local/progress.ts";
import { readArguments } from "../../runtime/command-arguments.ts";
import { copyTree } from "./copy-tree.ts";
import { mutations } from "./list-mutations.ts";
import { applyMutation, type Mutation, type Result, summarize, type TestedMutation } from "./mutation.ts";
import { openRunner, type Runner } from "./run-tests.ts";

const help = `usage: npm run mutate -- [options]

Removes one guard or rule at a time from a copy of the sources, and runs the tests that should fail. Prints the result of
each mutation and the share that was caught. A mutation is caught when a test fails; code that does not load counts as an
error. Exits with 1 when less than 95 % are caught, when a surviving mutation has no justification, or when a mutation
could not be tested.

  --only TEXT    only mutations whose name or file contains this text; may be given several times
  --list         print the mutations with their files and tests, and run nothing
  --help         print this text

The mutations are in test/mutations; CONTRIBUTING.md says how to add one.`;

const { values, refuse } = readArguments(help, {
  only: { type: "string", multiple: true, default: [] },
  list: { type: "boolean", default: false },
});
const chosen = mutations.filter(
  ({ name, file }) => values.only.length === 0 || values.only.some((text) => `${file} ${name}`.includes(text)),
);
if (chosen.length === 0) {
  refuse(`no mutation's name or file contains ${values.only.join(" or ")}`);
}
if (values.list) {
  for (const { name, file, tests } of chosen) console.log(`${file}: ${name} (${tests.join(", ")})`);
  process.exit(0);
}

const root = process.cwd();
const sources = await readSources(chosen);
// The copy shares the compile cache of the working tree.
process.env["NODE_COMPILE_CACHE"] ??= resolve(".local", "compile-cache");
const copy = await copyTree(root);
process.chdir(copy);
// Runs also when a signal ends this process: vitest handles the signal, and the services stop with it.
process.once("exit", () => rmSync(copy, { recursive: true, force: true }));
let opened: Runner | undefined;

const progress = createProgress();
try {
  process.exitCode = (await runAll()) ? 0 : 1;
} finally {
  await closeRunner();
}
process.exit();

/** Reads each mutated file once. Throws before anything runs when a mutation's text does not occur exactly once. */
async function readSources(all: readonly Mutation[]): Promise<Map<string, string>> {
  const files = [...new Set(all.map(({ file }) => file))];
  const texts = await Promise.all(files.map((file) => readFile(join(root, file), "utf8")));
  const found = new Map(files.map((file, index) => [file, texts[index] ?? ""]));
  const wrong = all.flatMap((mutation) => {
    try {
      applyMutation(found.get(mutation.file) ?? "", mutation);
      return [];
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)];
    }
  });
  if (wrong.length === 0) return found;
  console.error(wrong.join("\n"));
  process.exit(2);
}

async function getRunner(): Promise<Runner> {
  opened ??= await openRunner(copy);
  return opened;
}

async function closeRunner(): Promise<void> {
  await opened?.close();
  opened = undefined;
}

async function runAll(): Promise<boolean> {
  const files = [...new Set(chosen.flatMap(({ tests }) => tests))];
  progress.say(`${files.length} test files without a mutation`);
  const unchanged = await (await getRunner()).run(files);
  if (unchanged.outcome !== "passed") {
    progress.print(
      `the tests do not pass without a mutation: ${"test" in unchanged ? unchanged.test : unchanged.reason}`,
    );
    return false;
  }
  const tried: TestedMutation[] = [];
  for (const mutation of chosen) {
    progress.say(`${tried.length + 1} of ${chosen.length}: ${mutation.name}`);
    const begun = performance.now();
    const result = await tryMutation(mutation);
    tried.push({ mutation, result });
    const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
    progress.print(`${result.outcome.padEnd(8)}  ${mutation.file}: ${mutation.name} (${seconds} s)`);
    if (result.outcome === "caught") progress.print(`          by "${result.by}"`);
  }
  const { passes, lines } = summarize(tried);
  for (const line of lines) progress.print(line);
  return passes;
}

/**
 * Applies a mutation to the copy, runs its tests file by file until one fails, and reverts it. The databases of tests are copies of one
 * that is migrated when the services start, so they start anew for a mutation of a migration or of the grants.
 */
async function tryMutation(mutation: Mutation): Promise<Result> {
  const { file, tests } = mutation;
  const text = sources.get(file) ?? "";
  const change = async (to: string) => {
    await writeFile(join(copy, file), to);
    if (/^db\/(migrations|grants)\//.test(file)) await closeRunner();
    opened?.forget(file);
  };
  let broken: string | undefined;
  for (const test of tests) {
    await change(applyMutation(text, mutation));
    const run = await (await getRunner()).run([test]);
    await change(text);
    if (run.outcome === "broken") broken ??= run.reason;
    if (run.outcome !== "failed") continue;
    // A timeout or a lost connection may be caused by the machine: then the same file also fails without the mutation.
    const rerun = run.byExpectation ? undefined : await (await getRunner()).run([test]);
    if (rerun === undefined || rerun.outcome === "passed") return { outcome: "caught", by: run.test };
    broken ??= `${test} does not pass without the mutation either`;
  }
  return broken === undefined ? { outcome: "survived" } : { outcome: "broken", reason: broken };
}
