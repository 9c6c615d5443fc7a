import type { FinalizedState } from "../../chains/solana/cluster-state.ts";
import { type Earliest, listNeverSeen } from "../../chains/solana/never-seen.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { findExpiryHeight, findNonceSlot } from "./expiry-heights.ts";

/**
 * Blocks before a transaction's last valid height in which it can have been included: the 150 of a blockhash, and the slots by which
 * the last height may be too high (verify-payments.ts).
 */
const BLOCKS = 600;

/** The transactions of each cluster that the log has named. A pass finds them again every few slots. */
const named = new WeakMap<SolanaChain, Set<string>>();

/**
 * Returns the hashes of those of these transactions of ours that were never included (`listNeverSeen`): nobody can send one before
 * its signing. One that endpoints do not go back to stays in flight, and the log names it once. Throws ChainError.
 */
export async function listNeverIncluded(
  deps: Pick<TransferDeps, "log">,
  chain: SolanaChain,
  rows: readonly SolanaTransactionRow[],
  { since, final }: { since: number; final?: FinalizedState },
): Promise<Set<string>> {
  const transactions = rows.map((row) => ({ hash: row.hash, earliest: earliestOf(row, final) }));
  const { never, unproven } = await listNeverSeen(chain, transactions, { since });
  const before = named.get(chain) ?? new Set();
  if (unproven.some((hash) => !before.has(hash))) {
    // Transactions that wait and those that have landed are asked about in turn, so the earlier ones stay.
    named.set(chain, new Set([...before, ...unproven]));
    deps.log.error(
      { chain: chain.chain, transactions: unproven },
      "too few endpoints keep the history that shows whether a transaction of ours was included",
    );
  }
  return never;
}

function earliestOf(row: SolanaTransactionRow, final: FinalizedState | undefined): Earliest {
  const { nonce_slot: slot, created_at: signedAt } = row;
  if (slot !== null) return { slot: final ? findNonceSlot(row, final) : slot, signedAt };
  // One endpoint may have reported a last height that is far too high.
  const last = Math.min(row.last_valid_height ?? 0, findExpiryHeight(row) ?? Number.MAX_SAFE_INTEGER);
  // Both heights may be too high, and say nothing then: the blockhash has expired below the final height.
  if (final && last > final.height) return { height: 0, signedAt };
  return { height: Math.max(0, last - BLOCKS), signedAt };
}
