import { waitUntil } from "../../local/wait-until.ts";

/** A limit that a test gives is generous on an idle machine. A busy or slow one needs several times as long. */
const SLOWNESS = 3;

/**
 * Calls `check` until it returns neither false nor undefined, and returns that. Tests wait for conditions, never for a
 * time: `await waitFor(() => statusOf(id) === "succeeded", { within: 10_000 })`. Throws after three times
 * `within` milliseconds.
 */
export function waitFor<T>(
  check: () => T | Promise<T>,
  { within, what = "the condition", every = 20 }: { within: number; what?: string; every?: number },
): Promise<Exclude<T, false | undefined>> {
  return waitUntil(what, check, { withinMs: SLOWNESS * within, everyMs: every });
}
