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
 * The block after the cursor has another parent: goes back to the last block that both histories share, and takes back
 * what was seen above it. Transfers return to their lane's nonce, whose bytes are offered again; what was confirmed
 * stays as it was told. Gives the cursor on the shared block.
 * @param below a height that is known to be wrong, with all above it; the cursor's own when unset
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
      detail: `${chain.chain} shares no remembered block with what was read before`,
    });
  const { number } = shared;
  const back = { ...cursor, number, hash: shared.hash, finalNumber: Math.min(cursor.finalNumber, number) };
  await takeBack(deps, chain, cursor, { ...back, chainTime: shared.at });
  const depth = cursor.number - number;
  deps.metrics.reorgs.inc({ chain: chain.chain });
  deps.metrics.reorgDepth.set({ chain: chain.chain }, depth);
  const facts = { chain: chain.chain, depth, back: number };
  if (number < cursor.finalNumber)
    deps.log.error(
      facts,
      "a reorg went below what was called final; what was told stays, the same bytes are offered again",
    );
  else deps.log.warn(facts, "a reorg was followed");
  return back;
}

/** SQL: the nonce that carries the transfer has bytes that may still land. */
const stillCarried = sql<boolean>`exists (
  select from transaction t
  where t.lane_id = transfer.lane_id and t.nonce = transfer.lane_nonce and t.state in ('signed', 'offered', 'accepted'))`;

/** SQL: we hold nothing that we could submit for it. */
const madeByOthers = sql<boolean>`signature is null and purpose = 'payment'`;

async function takeBack(deps: TransferDeps, chain: EvmChain, from: Cursor, back: Cursor & Reached): Promise<void> {
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
    await moveRows(db, "transfer", { ...move, to: "carried", where: stillCarried });
    await moveRows(db, "transfer", {
      ...move,
      to: "awaited",
      where: madeByOthers,
      set: { lane_id: null, lane_nonce: null },
    });
    await moveRows(db, "transfer", { ...move, to: "ready", set: { lane_id: null, lane_nonce: null, due_at: at } });
    await forgetBlocks(db, { chain: chain.chain, above });
  });
}
