import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";

/** Delay before a chain's start is retried, milliseconds. */
const RETRY_MS = 1_000;

type StartDeps = { log: Logger; signal: AbortSignal; isTransient: (error: unknown) => boolean };

/**
 * Starts every chain, and retries transient errors until the chain has started. A chain whose RPC endpoints are unavailable
 * delays no other chain. Settles when the first chain has started, or when the process stops. Throws an error that is not
 * transient; after it has settled, passes such errors to `onError`. Returns the set of started chains, which grows later.
 */
export async function startChains(
  deps: StartDeps & { onError: (error: unknown) => void },
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
      deps.onError(error);
    }
  });
  await Promise.race(starts).finally(() => {
    settled = true;
  });
  return started;
}

/** Returns true when the chain has started, false when the process stops. */
async function retryStart(deps: StartDeps, chain: string, start: (chain: string) => Promise<void>): Promise<boolean> {
  while (!deps.signal.aborted) {
    try {
      await start(chain);
      return true;
    } catch (error) {
      if (!deps.isTransient(error)) throw error;
      deps.log.warn({ err: error, chain }, "chain cannot start yet");
      await delay(RETRY_MS, undefined, { signal: deps.signal }).catch(() => undefined);
    }
  }
  return false;
}
