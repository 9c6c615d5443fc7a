import { PublicKey } from "@solana/web3.js";
import { isFresh } from "../cache-age.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** Lamports per signature, a constant of the protocol. */
const PER_SIGNATURE = 5_000n;
/** Micro-lamports of a lamport. */
const MICRO = 1_000_000n;
/** How long a price is cached, in milliseconds. */
const CACHE_MS = 5_000;

const cache = new WeakMap<SolanaChain, { at: number; price: bigint }>();

/**
 * Returns the price to bid per compute unit, in micro-lamports: the 75th percentile of recent slots, at least the network's least
 * fee for that many units, and at most its fee cap. An endpoint reports for each slot the lowest price that was paid for our accounts,
 * and hardly anyone else writes them: without the least fee, we would offer what we have offered before, or nothing. The price is
 * cached for a few seconds. If the endpoints do not answer, the least fee applies.
 */
export async function chooseUnitPrice(chain: SolanaChain, units: number, now: number): Promise<bigint> {
  const cached = cache.get(chain);
  const price = cached && isFresh(cached.at, now, CACHE_MS) ? cached.price : await readPrice(chain, now);
  const { minPriorityFee, maxPriorityFee } = chain.network;
  const priceOf = (fee: bigint) => (fee * MICRO) / BigInt(units);
  const [least, cap] = [priceOf(minPriorityFee), priceOf(maxPriorityFee)];
  const wanted = price > least ? price : least;
  return wanted < cap ? wanted : cap;
}

async function readPrice(chain: SolanaChain, now: number): Promise<bigint> {
  const lockedWritableAccounts = [...chain.tokens.values()].map(
    ({ treasuryAccount }) => new PublicKey(treasuryAccount),
  );
  const recent = await chain.rpc
    .ask("getRecentPrioritizationFees", (connection) =>
      connection.getRecentPrioritizationFees({ lockedWritableAccounts: lockedWritableAccounts.slice(0, 128) }),
    )
    .catch(() => []);
  const paid = recent.map(({ prioritizationFee }) => BigInt(prioritizationFee)).sort((a, b) => (a < b ? -1 : 1));
  const price = paid[Math.floor(paid.length * 0.75)] ?? 0n;
  cache.set(chain, { at: now, price });
  return price;
}

/**
 * Returns the fee of a transaction that lands, failed or not, in lamports: signatures plus the priority fee, rounded
 * up.
 */
export function calculateFee(args: { signatures: number; units: bigint; unitPrice: bigint }): bigint {
  return BigInt(args.signatures) * PER_SIGNATURE + (args.units * args.unitPrice + MICRO - 1n) / MICRO;
}
