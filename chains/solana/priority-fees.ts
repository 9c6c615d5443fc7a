import { PublicKey } from "@solana/web3.js";
import { isFresh } from "../cache-age.ts";
import type { ComputeBudget } from "./build-payment.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** Lamports per signature, a constant of the protocol. */
const PER_SIGNATURE = 5_000n;
/** Micro-lamports of a lamport. */
const MICRO = 1_000_000n;
/** Least fee of a transaction that was not included and is signed again, in lamports. Without it, a price of zero would never rise. */
const LEAST_RAISED = 1_000n;
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
  const [least, cap] = [priceOf(minPriorityFee, units), priceOf(maxPriorityFee, units)];
  const wanted = price > least ? price : least;
  return wanted < cap ? wanted : cap;
}

/**
 * Returns the price to bid when a transaction with this budget was not included: twice the price, or the one that `chooseUnitPrice`
 * returns if that is higher, and at most the network's fee cap. Returns undefined if the transaction bids that already. So the
 * number of bids is bounded.
 */
export async function chooseRaisedPrice(
  chain: SolanaChain,
  { units, unitPrice }: ComputeBudget,
  now: number,
): Promise<bigint | undefined> {
  const current = await chooseUnitPrice(chain, units, now);
  const cap = priceOf(chain.network.maxPriorityFee, units);
  const least = [2n * unitPrice, priceOf(LEAST_RAISED, units), current].reduce((one, other) =>
    one > other ? one : other,
  );
  const wanted = least < cap ? least : cap;
  return wanted > unitPrice ? wanted : undefined;
}

/** Returns the price of a compute unit with which that many units cost a fee in lamports, rounded down. */
const priceOf = (fee: bigint, units: number) => (fee * MICRO) / BigInt(units);

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
