import { resolve } from "node:path";
import { defineConfig } from "vitest/config";
import { heapArgs } from "./local/service-process.ts";
import { findAlertmanager } from "./test/support/find-alertmanager.ts";

// Test files and the processes that they start load the same packages hundreds of times, so Node caches compiled code.
process.env["NODE_COMPILE_CACHE"] ??= resolve(".local/compile-cache");

/** Returns a project for one kind of test: `vitest run --project unit` starts no service. */
const project = (name: string, more: object = {}) => ({
  extends: true as const,
  test: { name, include: [`test/${name}/**/*.test.ts`], ...more },
});

/**
 * Tests on real services share the services of the global setup, and each owns the data that it writes. All limits of time are
 * several times what a test takes on an idle machine.
 */
const real = {
  globalSetup: ["test/support/shared-services.ts"],
  setupFiles: ["test/support/setup-file.ts"],
  testTimeout: 180_000,
  hookTimeout: 300_000,
  // A test that fails is repeated once, and the summary names it (docs/decisions/repeated-tests.md).
  retry: 1,
};

/** Tests that need a file which is not part of the project: a dump of the Lighthouse program. */
const needsDump = process.env["LIGHTHOUSE_PROGRAM"] ? [] : ["**/lighthouse-program.test.ts"];
/** Tests that need a program which is not part of the project: Caddy. */
const needsCaddy = process.env["CADDY"] ? [] : ["**/behind-proxy.test.ts"];
/** Tests that need Alertmanager, which `.ci/run` installs. */
const needsAlertmanager = findAlertmanager() === undefined ? ["**/alert-delivery.test.ts"] : [];

export default defineConfig({
  test: {
    pool: "forks",
    execArgv: heapArgs,
    // One more than the two cores of the target machine, because tests on real services wait most of the time. With two more, a slow
    // machine is late for limits of the service itself, such as the five seconds to connect to Postgres.
    maxWorkers: 3,
    // Loading the packages again for each file would take longer than half of the files.
    isolate: false,
    // Concurrent tests spend their time waiting.
    maxConcurrency: 30,
    // The default, a second, is less than a login or a page takes on a busy machine.
    expect: { poll: { timeout: 60_000 } },
    reporters: ["default", "./test/support/summary-reporter.ts"],
    // Node runs the sources as it does in production, which also takes less time than Vite's module runner.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      project("unit", { testTimeout: 90_000 }),
      project("integration", { ...real, exclude: [...needsDump, ...needsAlertmanager] }),
      // A minute at most on an idle machine.
      project("e2e", { ...real, exclude: needsCaddy, testTimeout: 600_000 }),
      project("browser", {
        ...real,
        globalSetup: [...real.globalSetup, "test/browser/chromium.ts"],
        testTimeout: 360_000,
      }),
    ],
  },
});
