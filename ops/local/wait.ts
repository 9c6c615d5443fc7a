import { setTimeout as pause } from "node:timers/promises";

/**
 * Asks again and again until the answer is neither false nor undefined, and gives that answer.
 * An answer that throws counts as "not yet"; the last such error becomes the cause of the final one.
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
    if (Date.now() > until) throw new Error(`waited ${withinMs} ms in vain: ${what}`, { cause });
    await pause(everyMs);
  }
}
