import { waitUntil } from "../../ops/local/wait.ts";

/**
 * Calls `ask` until it returns neither false nor undefined, and returns that. Tests wait for conditions, never for a
 * time: `await waitFor(() => statusOf(id) === "succeeded", { within: 10_000 })`.
 */
export function waitFor<T>(
  ask: () => T | Promise<T>,
  { within, what = "the condition", every = 20 }: { within: number; what?: string; every?: number },
): Promise<Exclude<T, false | undefined>> {
  return waitUntil(what, ask, { withinMs: within, everyMs: every });
}
