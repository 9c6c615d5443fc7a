import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";

/** How long to wait between tries, milliseconds. */
const AGAIN_MS = 1_000;

/**
 * Runs the first questions to the outside until they are answered: a worker that starts while its RPC or database is
 * away waits for it. Throws what is not passing trouble; returns early, without an answer, when the process is to stop.
 */
export async function retryStart(
  deps: { log: Logger; signal: AbortSignal; isTransient: (error: unknown) => boolean },
  start: () => Promise<void>,
): Promise<void> {
  while (!deps.signal.aborted) {
    try {
      return await start();
    } catch (error) {
      if (!deps.isTransient(error)) throw error;
      deps.log.warn({ err: error }, "cannot start yet");
      await delay(AGAIN_MS, undefined, { signal: deps.signal }).catch(() => undefined);
    }
  }
}
