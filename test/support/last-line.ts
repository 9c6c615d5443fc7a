import type { SerializedError } from "vitest";
import type { Reporter, TestModule } from "vitest/node";

/** Prints `N passed, N failed` as the very last line of a run, for people and tools that read only that. */
export default class LastLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const line = summarize(modules, unhandled.length);
    // Other reporters and the services' end may still have something to say.
    process.once("exit", () => process.stdout.write(`${line}\n`));
  }
}

function summarize(modules: readonly TestModule[], unhandled: number): string {
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  const count = (state: string) => tests.filter((test) => test.result().state === state).length;
  // A file that could not be loaded has no tests to fail, and an error outside of any test belongs to none of them.
  const broken = modules.filter((module) => module.state() === "failed" && failedTests(module) === 0).length;
  const skipped = count("skipped");
  const line = `${count("passed")} passed, ${count("failed") + broken + unhandled} failed`;
  return skipped > 0 ? `${line}, ${skipped} skipped` : line;
}

function failedTests(module: TestModule): number {
  return [...module.children.allTests("failed")].length;
}
