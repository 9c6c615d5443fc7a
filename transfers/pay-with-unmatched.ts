import type { Chain } from "../chains/chain.ts";
import { moveRows } from "../db/moves.ts";
import { lockByAuthorizations } from "../db/queries/transfers.ts";
import { assignUnmatched, type UnmatchedObservation } from "../db/queries/unmatched-movements.ts";
import type { Db } from "../db/tables.ts";
import { isProof } from "./match-movements.ts";
import type { BookUnsolicited } from "./record-movements.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/**
 * Lets final unmatched movements pay payments for whose accepted confirms nothing was sent, and includes the transfers that they make.
 * A movement that is not final may leave the chain again, so until then such a payment keeps its own transfer
 * (docs/decisions/replaced-transfers.md). Runs in the database transaction that books the other movements as exceptions. Returns the
 * movements that pay, and a function to call after the commit.
 * @param unmatched movements of one chain; the caller has locked them
 */
export async function payWithUnmatched(
  db: Db,
  deps: Pick<TransferDeps, "metrics" | "now">,
  { chain }: Pick<Chain, "chain">,
  { unmatched, unsolicited }: { unmatched: readonly UnmatchedObservation[]; unsolicited: BookUnsolicited },
): Promise<{ paying: readonly UnmatchedObservation[]; opened: () => void }> {
  const named = unmatched.filter((row) => row.authorization_nonce !== null);
  if (named.length === 0) return { paying: [], opened: () => undefined };
  const nonces = named.flatMap((row) => row.authorization_nonce ?? []);
  // A transfer that was accepted after its money had moved is not paid by it: the money was late for its quote.
  const earlier = new Set((await lockByAuthorizations(db, { chain, nonces })).map(({ id }) => id));
  const afterCommit = await unsolicited(db, chain, named.map(toMovement), { isFinal: true });
  const known = await lockByAuthorizations(db, { chain, nonces });
  const open = new Set(known.filter(({ id, state }) => state === "awaited" && !earlier.has(id)));
  const paying: UnmatchedObservation[] = [];
  const ids: string[] = [];
  for (const row of named) {
    const transfer = [...open].find((one) => isProof(toMovement(row), one));
    if (!transfer) continue;
    open.delete(transfer);
    await assignUnmatched(db, row, transfer.id);
    paying.push(row);
    ids.push(transfer.id);
  }
  await moveRows(db, "transfer", { ids, from: "awaited", to: "included", at: deps.now(), set: { due_at: null } });
  return {
    paying,
    opened() {
      afterCommit();
      const labels = { chain, purpose: "payment", from: "awaited", to: "included" };
      deps.metrics.transferTransitions.inc(labels, ids.length);
    },
  };
}

function toMovement(row: UnmatchedObservation) {
  return {
    blockId: row.block_id,
    blockNumber: row.block_number,
    txHash: row.tx_hash,
    logIndex: row.log_index,
    token: row.token,
    payer: row.payer,
    receiver: row.receiver,
    amount: row.amount,
    authorizationNonce: row.authorization_nonce,
    at: row.moved_at ?? undefined,
  };
}
