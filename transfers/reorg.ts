import { sql } from "kysely";
import { readBlock } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { ChainFault } from "../chains/faults.ts";
import { forgetBurnedGas } from "../db/burned-gas.ts";
import { advanceCursor, type Cursor, findBlockBelow, forgetBlocks, type Reached } from "../db/cursors.ts";
import { deleteFailedMovements } from "../db/failed-bookings.ts";
import { moveRows } from "../db/moves.ts";
import { orphanSightings } from "../db/sightings.ts";
import { unmarkIncluded } from "../db/transactions.ts";
import type { TransferDeps } from "./deps.ts";
import { WATCH_LEASE_MS } from "./lease.ts";

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
  let shared = await findBlockBelow(deps.db, { chain: chain.chain, number: below });
  while (shared && (await readBlock(chain.rpc, shared.number)).hash !== shared.hash)
    shared = await findBlockBelow(deps.db, { chain: chain.chain, number: shared.number });
  if (!shared)
    throw new ChainFault("wrong_chain", {
      detail: `${chain.chain} has none of the blocks that were read before`,
    });
  const { number } = shared;
  const back = { ...cursor, number, hash: shared.hash, finalNumber: Math.min(cursor.finalNumber, number) };
  await revert(deps, chain, cursor, { ...back, chainTime: shared.at });
  const depth = cursor.number - number;
  deps.metrics.reorgs.inc({ chain: chain.chain });
  deps.metrics.reorgDepth.set({ chain: chain.chain }, depth);
  const facts = { chain: chain.chain, depth, sharedBlock: number };
  if (number < cursor.finalNumber)
    deps.log.error(
      facts,
      "reorg reverted final blocks; confirmed transfers stay confirmed and their bytes are broadcast again",
    );
  else deps.log.warn(facts, "reorg followed");
  return back;
}

/** SQL: the nonce that the transfer is assigned to has bytes that can still be included. */
const isStillAssigned = sql<boolean>`exists (
  select from transaction t
  where t.lane_id = transfer.lane_id and t.nonce = transfer.lane_nonce and t.state in ('signed', 'offered', 'accepted'))`;

/** SQL: the payer or another relayer made the transfer, and there is no signature to submit. */
const isMadeByOthers = sql<boolean>`signature is null and purpose = 'payment'`;

async function revert(deps: TransferDeps, chain: EvmChain, from: Cursor, back: Cursor & Reached): Promise<void> {
  await deps.db.transaction().execute(async (db) => {
    const ok = await advanceCursor(db, from, { ...back, leaseMs: WATCH_LEASE_MS });
    if (!ok) throw new ChainFault("rpc_behind", { detail: `another watcher has moved the cursor of ${chain.chain}` });
    const above = back.number;
    const ids = await orphanSightings(db, { chain: chain.chain, above });
    await unmarkIncluded(db, { chain: chain.chain, above });
    await deleteFailedMovements(db, { chain: chain.chain, above });
    await forgetBurnedGas(db, { chain: chain.chain, above });
    const at = deps.now();
    const move = { ids, from: "included" as const, at, detail: { reorg: from.number - above } };
    await moveRows(db, "transfer", { ...move, to: "carried", where: isStillAssigned });
    await moveRows(db, "transfer", {
      ...move,
      to: "awaited",
      where: isMadeByOthers,
      set: { lane_id: null, lane_nonce: null },
    });
    await moveRows(db, "transfer", { ...move, to: "ready", set: { lane_id: null, lane_nonce: null, due_at: at } });
    await forgetBlocks(db, { chain: chain.chain, above });
  });
}
