import { isFresh } from "../fresh.ts";
import type { SolanaChain } from "./open.ts";
import { type Blockhash, readBlockhash } from "./reads.ts";

/** A blockhash is given out for so long before a newer one is asked for, milliseconds. */
const FRESH_MS = 1_000;

const cache = new WeakMap<SolanaChain, { at: number; asked: Promise<Blockhash> }>();

/** A blockhash of a second ago at most, however many want one. Throws ChainFault. */
export function recentBlockhash(chain: SolanaChain, now: number): Promise<Blockhash> {
  const known = cache.get(chain);
  if (known && isFresh(known.at, now, FRESH_MS)) return known.asked;
  const asked = readBlockhash(chain);
  const entry = { at: now, asked };
  cache.set(chain, entry);
  // What failed is asked again by the next one.
  asked.catch(() => cache.get(chain) === entry && cache.delete(chain));
  return asked;
}
