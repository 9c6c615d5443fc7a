import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";

/** How long to wait between tries, milliseconds. */
const AGAIN_MS = 1_000;

type StartDeps = { log: Logger; signal: AbortSignal; isTransient: (error: unknown) => boolean };

/**
 * Runs the first questions about each chain until they are answered: a chain whose RPC is away is waited for, and keeps
 * none of the others waiting. Settles as soon as one chain has started, or when the process is to stop; throws what is
 * not passing trouble, and hands `onFault` what is found of a chain that comes later. Gives the chains that have
 * started, which grow.
 */
export async function startChains(
  deps: StartDeps & { onFault: (error: unknown) => void },
  chains: Iterable<string>,
  start: (chain: string) => Promise<void>,
): Promise<ReadonlySet<string>> {
  const started = new Set<string>();
  let settled = false;
  const starts = [...chains].map(async (chain) => {
    try {
      if (await retryStart(deps, chain, start)) started.add(chain);
    } catch (error) {
      if (!settled) throw error;
      deps.onFault(error);
    }
  });
  await Promise.race(starts).finally(() => {
    settled = true;
  });
  return started;
}

/** True when it has started, false when the process is to stop. */
async function retryStart(deps: StartDeps, chain: string, start: (chain: string) => Promise<void>): Promise<boolean> {
  while (!deps.signal.aborted) {
    try {
      await start(chain);
      return true;
    } catch (error) {
      if (!deps.isTransient(error)) throw error;
      deps.log.warn({ err: error, chain }, "cannot start yet");
      await delay(AGAIN_MS, undefined, { signal: deps.signal }).catch(() => undefined);
    }
  }
  return false;
}
