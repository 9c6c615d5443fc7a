import { isFresh } from "../cache-age.ts";
import { readAccounts } from "./cluster-state.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/**
 * Minimum balance, in lamports, of a relayer that pays for new transactions. It must stay above the rent of an account.
 */
const MIN_LANE_LAMPORTS = 3_000_000n;
/** How long balances are cached, in milliseconds. */
const CACHE_MS = 10_000;

const cache = new WeakMap<SolanaChain, { at: number; funded: string[] }>();

/**
 * Returns the relayer that pays for a transaction. The last digits of the key, a hash, spread transactions evenly over the
 * funded relayers, or over all relayers if none is funded. Balances are read in live mode only, and cached for a few seconds.
 */
export async function chooseLane(
  chain: SolanaChain,
  args: { key: string; now: number; isLive: boolean },
): Promise<string> {
  const funded = args.isLive && chain.lanes.length > 1 ? await listFunded(chain, args.now) : [];
  const candidates = funded.length > 0 ? funded : chain.lanes;
  return candidates[Number.parseInt(args.key.slice(-8), 16) % candidates.length] ?? "";
}

async function listFunded(chain: SolanaChain, now: number): Promise<string[]> {
  const cached = cache.get(chain);
  if (cached && isFresh(cached.at, now, CACHE_MS)) return cached.funded;
  const balances = await readAccounts(chain, chain.lanes);
  const funded = chain.lanes.filter((_lane, index) => (balances[index]?.lamports ?? 0n) >= MIN_LANE_LAMPORTS);
  cache.set(chain, { at: now, funded });
  return funded;
}
