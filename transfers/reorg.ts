import { sql } from "kysely";
import { readBlock } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { ChainFault } from "../chains/faults.ts";
import { advanceCursor, type Cursor, findBlock, forgetBlocks } from "../db/cursors.ts";
import { moveRows } from "../db/moves.ts";
import { orphanSightings } from "../db/sightings.ts";
import { unmarkIncluded } from "../db/transactions.ts";
import type { TransferDeps } from "./deps.ts";

/**
 * The block after the cursor has another parent: goes back to the last block that both histories share, and takes back
 * what was seen above it. Transfers return to their lane's nonce, whose bytes are offered again; what was confirmed
 * stays as it was told. Gives the cursor on the shared block.
 */
export async function followReorg(deps: TransferDeps, chain: EvmChain, cursor: Cursor): Promise<Cursor> {
  let number = cursor.number - 1;
  let shared = await findBlock(deps.db, { chain: chain.chain, number });
  while (shared && (await readBlock(chain.rpc, number)).hash !== shared.hash) {
    number -= 1;
    shared = await findBlock(deps.db, { chain: chain.chain, number });
  }
  if (!shared)
    throw new ChainFault("wrong_chain", {
      detail: `${chain.chain} shares no remembered block with what was read before`,
    });
  const back = { ...cursor, number, hash: shared.hash };
  const depth = cursor.number - number;
  await deps.db.transaction().execute(async (db) => {
    const until = new Date(deps.now().getTime() + 3_000);
    const ok = await advanceCursor(db, { chain: chain.chain, from: cursor, to: back, until });
    if (!ok) throw new ChainFault("rpc_behind", { detail: `another watcher has moved the cursor of ${chain.chain}` });
    const ids = await orphanSightings(db, { chain: chain.chain, above: number });
    await unmarkIncluded(db, { chain: chain.chain, above: number });
    const at = deps.now();
    const detail = { reorg: depth };
    await moveRows(db, "transfer", {
      ids,
      from: "included",
      to: "carried",
      at,
      detail,
      where: sql`lane_nonce is not null`,
    });
    await moveRows(db, "transfer", {
      ids,
      from: "included",
      to: "ready",
      at,
      detail,
      where: sql`lane_nonce is null`,
      set: { due_at: at },
    });
    await forgetBlocks(db, { chain: chain.chain, above: number });
  });
  deps.metrics.reorgs.inc({ chain: chain.chain });
  deps.metrics.reorgDepth.set({ chain: chain.chain }, depth);
  deps.log.warn({ chain: chain.chain, depth, back: number }, "a reorg was followed");
  return back;
}
