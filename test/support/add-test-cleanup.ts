import { onTestFinished, TestRunner } from "vitest";
import { addCleanup } from "./cleanups.ts";

/**
 * Registers a cleanup that runs when the running test is over. Outside of a test, and in a concurrent one, it runs when the
 * file is over.
 */
export function addTestCleanup(end: () => unknown): void {
  const test = TestRunner.getCurrentTest();
  if (test === undefined || test.concurrent === true) addCleanup(end);
  else onTestFinished(async () => void (await end()));
}
