import { isFresh } from "../fresh.ts";
import type { SolanaChain } from "./open.ts";
import { readAccounts } from "./reads.ts";

/** A relayer with less than this pays for no new transaction, lamports: it has to stay above an account's rent. */
export const LEAST_LAMPORTS = 3_000_000n;
/** How long balances stay good, milliseconds. */
const FRESH_MS = 10_000;

const cache = new WeakMap<SolanaChain, { at: number; funded: string[] }>();

/**
 * Which relayer pays for a transaction: its key spreads them evenly, and those without money are left out as long as one
 * has some. Balances are asked every few seconds only, and in live mode only.
 */
export async function chooseLane(
  chain: SolanaChain,
  args: { key: string; now: number; isLive: boolean },
): Promise<string> {
  const funded = args.isLive && chain.lanes.length > 1 ? await listFunded(chain, args.now) : [];
  const among = funded.length > 0 ? funded : chain.lanes;
  return among[Number.parseInt(args.key.slice(2, 10), 16) % among.length] ?? "";
}

async function listFunded(chain: SolanaChain, now: number): Promise<string[]> {
  const known = cache.get(chain);
  if (known && isFresh(known.at, now, FRESH_MS)) return known.funded;
  const balances = await readAccounts(chain, chain.lanes);
  const funded = chain.lanes.filter((_lane, index) => (balances[index]?.lamports ?? 0n) >= LEAST_LAMPORTS);
  cache.set(chain, { at: now, funded });
  return funded;
}
