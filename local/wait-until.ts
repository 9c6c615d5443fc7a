import { setTimeout as pause } from "node:timers/promises";

/**
 * Polls until the answer is neither false nor undefined, and returns it. An error of `ask` counts as "not yet"; the last one
 * becomes the cause of the timeout error.
 */
export async function waitUntil<T>(
  what: string,
  ask: () => T | Promise<T>,
  { withinMs, everyMs = 20, signal }: { withinMs: number; everyMs?: number; signal?: AbortSignal },
): Promise<Answer<Awaited<T>>> {
  const until = Date.now() + withinMs;
  let cause: unknown;
  for (;;) {
    signal?.throwIfAborted();
    try {
      const answer = await ask();
      if (isAnswer(answer)) return answer;
    } catch (error) {
      cause = error;
    }
    if (Date.now() > until) throw new Error(`timed out after ${withinMs} ms: ${what}`, { cause });
    await pause(everyMs);
  }
}

type Answer<T> = Exclude<T, false | undefined>;

function isAnswer<T>(answer: T): answer is Answer<T> {
  return answer !== false && answer !== undefined;
}
