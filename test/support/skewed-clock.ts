import { fileURLToPath } from "node:url";

const preload = fileURLToPath(new URL("./skewed-clock.js", import.meta.url));

/** Environment of a process whose machine's clock is so much ahead, milliseconds. */
export function withClockAhead(ms: number): Record<string, string> {
  return { NODE_OPTIONS: `--import ${preload}`, TEST_CLOCK_AHEAD_MS: String(ms) };
}
