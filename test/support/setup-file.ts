import { afterAll } from "vitest";
import { runCleanups } from "./cleanups.ts";

// Runs in every test file before its own code, so this is the last afterAll to run.
afterAll(runCleanups, 300_000);
