import { PublicKey } from "@solana/web3.js";
import { isFresh } from "../fresh.ts";
import type { SolanaChain } from "./open.ts";

/** Lamports per signature; a constant of the protocol. */
const PER_SIGNATURE = 5_000n;
/** How long a price stays good, milliseconds. */
const FRESH_MS = 5_000;

const cache = new WeakMap<SolanaChain, { at: number; price: bigint }>();

/**
 * What a compute unit costs just now, micro-lamports: what three quarters of the recent transactions that touched our
 * accounts have paid at most, under the network's cap for so many units. Asked every few seconds, however often it is
 * wanted; when it cannot be asked, nothing is offered above the signatures.
 */
export async function chooseUnitPrice(chain: SolanaChain, units: number, now: number): Promise<bigint> {
  const known = cache.get(chain);
  const fresh = known && isFresh(known.at, now, FRESH_MS) ? known.price : await readPrice(chain, now);
  const cap = (chain.network.maxPriorityFee * 1_000_000n) / BigInt(units);
  return fresh < cap ? fresh : cap;
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

/** What a transaction costs when it lands, failed or not, lamports: its signatures and its priority (rounded up). */
export function feeOf(args: { signatures: number; units: bigint; unitPrice: bigint }): bigint {
  return BigInt(args.signatures) * PER_SIGNATURE + (args.units * args.unitPrice + 999_999n) / 1_000_000n;
}
