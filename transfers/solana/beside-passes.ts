import { setTimeout as delay } from "node:timers/promises";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";

/** A pass waits for its work for this long, milliseconds. An endpoint or a signer may take its whole time limit to answer. */
const WAIT_MS = 1_000;

/**
 * Returns a function that runs work of a cluster's passes, one at a time for each cluster. Work that takes longer goes on beside later
 * passes, so that it delays no payment, and one of them gets what it returns or throws. Returns undefined meanwhile.
 */
export function runBesidePasses<T>(): (chain: SolanaChain, work: () => Promise<T>) => Promise<T | undefined> {
  const running = new WeakMap<SolanaChain, Promise<T>>();
  return async (chain, work) => {
    const earlier = running.get(chain);
    const run = earlier ?? work();
    running.set(chain, run);
    const end = () => true;
    const hasEnded = await Promise.race([run.then(end, end), delay(earlier ? 0 : WAIT_MS, false, { ref: false })]);
    if (!hasEnded) return undefined;
    running.delete(chain);
    return run;
  };
}
