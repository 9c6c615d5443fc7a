import { relative } from "node:path";
import type { SerializedError } from "vitest";
import type { Reporter, TestModule } from "vitest/node";

/** So many tests may pass only at their second run. With more of them, a run fails (docs/decisions/repeated-tests.md). */
const MAX_REPEATED = 10;

/**
 * Prints the slowest files of a run, the tests that passed only when they were repeated, and `N passed, N failed` as its
 * last line, for people and tools that read only that line.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const repeated = listRepeated(modules);
    if (repeated.length > MAX_REPEATED) process.exitCode = 1;
    const lines = [...listSlowest(modules), ...describeRepeated(repeated), summarize(modules, unhandled.length)];
    // Other reporters and the services' shutdown may still print something.
    process.once("exit", () => process.stdout.write(`${lines.join("\n")}\n`));
  }
}

/** Returns a line for each of the ten slowest files, slowest first. A run of one file has no such lines. */
function listSlowest(modules: readonly TestModule[]): string[] {
  if (modules.length < 2) return [];
  const timed = modules.map((module) => ({ file: relative("", module.moduleId), seconds: secondsOf(module) }));
  const slowest = timed.sort((a, b) => b.seconds - a.seconds).slice(0, 10);
  return ["slowest files:", ...slowest.map(({ file, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${file}`)];
}

/** Returns the seconds that a file took to load and to run. Many files start their chains while they are loaded. */
function secondsOf(module: TestModule): number {
  const { prepareDuration, setupDuration, collectDuration, duration } = module.diagnostic();
  return (prepareDuration + setupDuration + collectDuration + duration) / 1_000;
}

/** Returns the names of the tests that failed and passed when they were repeated. */
function listRepeated(modules: readonly TestModule[]): string[] {
  return modules.flatMap((module) =>
    [...module.children.allTests("passed")]
      .filter((test) => test.diagnostic()?.flaky)
      .map(({ fullName }) => `${relative("", module.moduleId)} > ${fullName}`),
  );
}

function describeRepeated(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const result =
    names.length > MAX_REPEATED
      ? `more than ${MAX_REPEATED}: the run fails`
      : "each is a defect of the test or of the service";
  return [`passed only when repeated (${result}):`, ...names.map((name) => `  ${name}`)];
}

function summarize(modules: readonly TestModule[], unhandled: number): string {
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  const count = (state: string) => tests.filter((test) => test.result().state === state).length;
  // Files that failed to load and errors outside tests count as failures too.
  const broken = modules.filter((module) => module.state() === "failed" && failedTests(module) === 0).length;
  const skipped = count("skipped");
  const line = `${count("passed")} passed, ${count("failed") + broken + unhandled} failed`;
  return skipped > 0 ? `${line}, ${skipped} skipped` : line;
}

function failedTests(module: TestModule): number {
  return [...module.children.allTests("failed")].length;
}
