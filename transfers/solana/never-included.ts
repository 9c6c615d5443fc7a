import { listNeverSeen, type Unseen } from "../../chains/solana/never-seen.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/**
 * Blocks before a transaction's last valid height in which it can have been included: the 150 of a blockhash, and the slots by which
 * the last height may be too high (verify-payments.ts).
 */
const BLOCKS = 600;

/**
 * Returns the hashes of these transactions of ours that no endpoint has ever seen, as two endpoints prove that have reached slot
 * `since` and keep the history from the signing on. A transaction that they do not go back to stays in flight, and the log names it.
 * Throws ChainError.
 */
export async function listNeverIncluded(
  deps: Pick<TransferDeps, "log">,
  chain: SolanaChain,
  rows: readonly SolanaTransactionRow[],
  since: number,
): Promise<Set<string>> {
  const { never, unproven } = await listNeverSeen(chain, rows.map(toUnseen), { since });
  if (unproven.length > 0)
    deps.log.warn(
      { chain: chain.chain, transactions: unproven },
      "too few endpoints keep the history that shows whether a transaction of ours was included",
    );
  return never;
}

/** Before its signing, nobody can send a transaction. */
function toUnseen({ hash, nonce_slot: nonceSlot, last_valid_height: lastHeight }: SolanaTransactionRow): Unseen {
  if (nonceSlot !== null) return { hash, earliest: { slot: nonceSlot } };
  return { hash, earliest: { height: Math.max(0, (lastHeight ?? 0) - BLOCKS) } };
}
