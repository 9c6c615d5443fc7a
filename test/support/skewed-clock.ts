import { fileURLToPath } from "node:url";

const preload = fileURLToPath(new URL("./skewed-clock-preload.js", import.meta.url));

/** Returns the environment of a process whose clock is `ms` milliseconds ahead. */
export function withClockAhead(ms: number): Record<string, string> {
  return { NODE_OPTIONS: `--import ${preload}`, TEST_CLOCK_AHEAD_MS: String(ms) };
}
