import { afterAll } from "vitest";
import { endAll } from "./at-end.ts";

// Runs in every test file before its own code, so this is the last afterAll to run.
afterAll(endAll, 90_000);
