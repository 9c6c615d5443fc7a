import { setTimeout as pause } from "node:timers/promises";

/**
 * Polls until the answer is neither false nor undefined, and returns it. An error of `ask` counts as "not yet"; the last one
 * becomes the cause of the timeout error.
 */
export async function waitUntil<T>(
  what: string,
  ask: () => T | Promise<T>,
  { withinMs, everyMs = 20, signal }: { withinMs: number; everyMs?: number; signal?: AbortSignal },
): Promise<Exclude<T, false | undefined>> {
  const until = Date.now() + withinMs;
  let cause: unknown;
  for (;;) {
    signal?.throwIfAborted();
    try {
      const answer = await ask();
      if (answer !== false && answer !== undefined) return answer as Exclude<T, false | undefined>;
    } catch (error) {
      cause = error;
    }
    if (Date.now() > until) throw new Error(`timed out after ${withinMs} ms: ${what}`, { cause });
    await pause(everyMs);
  }
}
