import type { SerializedError } from "vitest";
import type { Reporter, TestModule } from "vitest/node";

/** Prints `N passed, N failed` as the last line of a run, for people and tools that read only that line. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const line = summarize(modules, unhandled.length);
    // Other reporters and the services' shutdown may still print something.
    process.once("exit", () => process.stdout.write(`${line}\n`));
  }
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
