import { ChainError } from "../../chains/errors.ts";
import { readBlock } from "../../chains/evm/blocks.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readFromReadable } from "../../chains/evm/readable-answers.ts";
import { deleteBurnedGasAbove } from "../../db/queries/burned-gas.ts";
import {
  advanceCursor,
  type Cursor,
  deleteBlocks,
  findBlockBelow,
  type Reached,
} from "../../db/queries/chain-cursors.ts";
import { deleteFailedMovements } from "../../db/queries/failed-bookings.ts";
import { orphanObservations } from "../../db/queries/observations.ts";
import { revertIncluded } from "../../db/queries/transactions.ts";
import { revertTransfers } from "../../db/queries/transfer-moves.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { WATCH_LEASE_MS } from "../watch-lease.ts";

/**
 * Follows a reorg: moves the cursor back to the last block that both histories share, and reverts what was recorded above
 * it. Included transfers are assigned to their lane's nonce again, and its bytes are broadcast again. Confirmed transfers
 * stay confirmed: a status that was returned is never taken back. Returns the cursor at the shared block.
 * @param below the lowest height that is known to be wrong, the cursor's own by default
 */
export async function followReorg(
  deps: TransferDeps,
  chain: EvmChain,
  cursor: Cursor,
  below: number = cursor.number,
): Promise<Cursor> {
  const readHash = (number: number) => readFromReadable(chain, async (rpc) => (await readBlock(rpc, number)).hash);
  let shared = await findBlockBelow(deps.db, { chain: chain.chain, number: below });
  while (shared && (await readHash(shared.number)) !== shared.hash)
    shared = await findBlockBelow(deps.db, { chain: chain.chain, number: shared.number });
  if (!shared)
    throw new ChainError("wrong_chain", {
      detail: `${chain.chain} has none of the blocks that were read before`,
    });
  const { number } = shared;
  const back = { ...cursor, number, blockId: shared.hash, finalNumber: Math.min(cursor.finalNumber, number) };
  await revert(deps, chain, cursor, { ...back, chainTime: shared.at });
  const depth = cursor.number - number;
  deps.metrics.reorgs.inc({ chain: chain.chain });
  deps.metrics.reorgDepth.set({ chain: chain.chain }, depth);
  const facts = { chain: chain.chain, depth, sharedBlock: number };
  if (number < cursor.finalNumber) {
    deps.metrics.finalReorgs.inc({ chain: chain.chain });
    deps.log.error(
      facts,
      "reorg reverted final blocks; confirmed transfers stay confirmed and their bytes are broadcast again",
    );
  } else deps.log.warn(facts, "reorg followed");
  return back;
}

async function revert(deps: TransferDeps, chain: EvmChain, from: Cursor, back: Cursor & Reached): Promise<void> {
  await deps.db.transaction().execute(async (db) => {
    const ok = await advanceCursor(db, from, { ...back, leaseMs: WATCH_LEASE_MS });
    if (!ok) throw new ChainError("rpc_behind", { detail: `another watcher has moved the cursor of ${chain.chain}` });
    const above = back.number;
    const ids = await orphanObservations(db, { chain: chain.chain, above });
    await revertIncluded(db, { chain: chain.chain, above });
    await deleteFailedMovements(db, { chain: chain.chain, above });
    await deleteBurnedGasAbove(db, { chain: chain.chain, above });
    await revertTransfers(db, { ids, depth: from.number - above, at: deps.now() });
    await deleteBlocks(db, { chain: chain.chain, above });
  });
}
