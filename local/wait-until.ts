import { setTimeout as pause } from "node:timers/promises";

/** The longest pause between two polls that the length of the wait may cause, milliseconds. */
const LONGEST_MS = 250;

/**
 * Polls until the answer is neither false nor undefined, and returns it. It polls every `everyMs` at first, and then less
 * often, because many waits at the same time would take the processor time of what they wait for. An error of `ask` counts as "not
 * yet"; the last one becomes the cause of the timeout error.
 */
export async function waitUntil<T>(
  what: string,
  ask: () => T | Promise<T>,
  { withinMs, everyMs = 20, signal }: { withinMs: number; everyMs?: number; signal?: AbortSignal },
): Promise<Answer<Awaited<T>>> {
  const begun = Date.now();
  let cause: unknown;
  for (;;) {
    signal?.throwIfAborted();
    try {
      const answer = await ask();
      if (isAnswer(answer)) return answer;
    } catch (error) {
      cause = error;
    }
    const waited = Date.now() - begun;
    if (waited > withinMs) throw new Error(`timed out after ${withinMs} ms: ${what}`, { cause });
    await pause(Math.max(everyMs, Math.min(waited / 10, LONGEST_MS)));
  }
}

type Answer<T> = Exclude<T, false | undefined>;

function isAnswer<T>(answer: T): answer is Answer<T> {
  return answer !== false && answer !== undefined;
}
