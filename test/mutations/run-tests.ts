import { join } from "node:path";
import { createVitest, type TestModule, type Vitest } from "vitest/node";

/**
 * The result of some test files. `failed`: at least one test failed, by an expectation or otherwise (a timeout, an
 * error). `broken`: no test failed, but the files did not pass.
 */
type Run =
  | { outcome: "passed" }
  | { outcome: "failed"; test: string; byExpectation: boolean }
  | { outcome: "broken"; reason: string };

export type Runner = {
  /** Runs test files, and stops at the first failure. */
  run(files: readonly string[]): Promise<Run>;
  /** Invalidates the compiled code of a changed file. */
  forget(file: string): void;
  close(): Promise<void>;
};

/** Opens vitest on a directory. The shared services (Postgres, Redis, Anvil) start once and run until `close`. */
export async function openRunner(dir: string): Promise<Runner> {
  const vitest = await createVitest("test", {
    root: dir,
    config: join(dir, "vitest.config.ts"),
    watch: false,
    bail: 1,
    // A test that notices a mutation fails again.
    retry: 0,
    reporters: [{}],
  });
  return {
    run: (files) =>
      run(
        vitest,
        files.map((file) => join(dir, file)),
      ),
    forget: (file) => vitest.invalidateFile(join(dir, file)),
    close: () => vitest.close(),
  };
}

async function run(vitest: Vitest, files: readonly string[]): Promise<Run> {
  const found = await vitest.globTestSpecifications([...files]);
  const chosen = found.filter(({ moduleId }) => files.includes(moduleId));
  const missing = files.filter((file) => !chosen.some(({ moduleId }) => moduleId === file));
  if (missing.length > 0) return { outcome: "broken", reason: `there is no such test file: ${missing.join(", ")}` };
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(chosen);
  const modules = testModules.filter(({ moduleId }) => files.includes(moduleId));
  for (const module of modules)
    for (const test of module.children.allTests("failed")) {
      const [error] = test.result().errors ?? [];
      return { outcome: "failed", test: test.fullName, byExpectation: error?.name === "AssertionError" };
    }
  const reason = modules.map(findError).find((error) => error !== undefined) ?? describeFirst(unhandledErrors);
  return reason === undefined ? { outcome: "passed" } : { outcome: "broken", reason };
}

/** Returns what prevented a file, or one of its suites, from running. */
function findError(module: TestModule): string | undefined {
  const suites = [...module.children.allSuites()];
  const error = describeFirst([...module.errors(), ...suites.flatMap((suite) => [...suite.errors()])]);
  if (error !== undefined) return error;
  return module.ok() && module.children.size > 0 ? undefined : `${module.relativeModuleId} was not run`;
}

function describeFirst(errors: readonly unknown[]): string | undefined {
  const [first] = errors;
  if (first === undefined) return undefined;
  const { message } = first as { message?: unknown };
  return String(message ?? first).split("\n", 1)[0];
}
