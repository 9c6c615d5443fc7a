import { isFresh } from "../cache-age.ts";
import { type Blockhash, readBlockhash } from "./cluster-state.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** How long a blockhash is cached, in milliseconds. */
const CACHE_MS = 1_000;

const cache = new WeakMap<SolanaChain, { at: number; blockhash: Promise<Blockhash> }>();

/** Returns a blockhash that was read at most a second ago. Concurrent callers share one request. Throws ChainError. */
export function recentBlockhash(chain: SolanaChain, now: number): Promise<Blockhash> {
  const cached = cache.get(chain);
  if (cached && isFresh(cached.at, now, CACHE_MS)) return cached.blockhash;
  const blockhash = readBlockhash(chain);
  const entry = { at: now, blockhash };
  cache.set(chain, entry);
  // A failed request is not cached: the next caller sends another one.
  blockhash.catch(() => cache.get(chain) === entry && cache.delete(chain));
  return blockhash;
}
