import type { EvmChain } from "../chains/evm/open.ts";
import type { SeenTransfer } from "../chains/movements.ts";
import { type Cursor, findBlock } from "../db/cursors.ts";
import { moveRows } from "../db/moves.ts";
import type { Db } from "../db/tables.ts";
import { listOutlived, type TransferRow } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";
import { type BoundBook, recordBlocks } from "./record.ts";
import { findMade, readUsed } from "./uses.ts";

/** Books transfers that can no longer come, in the transaction that ends them. Gives what is to be done after the commit. */
export type EndedBook = (db: Db, ended: readonly TransferRow[]) => Promise<() => void>;

/** Transfers looked at in one turn. */
const MOST = 50;
/**
 * Ends transfers whose money can no longer come: the final chain's own clock is past `validBefore`, and the
 * authorization is unused, or was used for something else or cancelled. Nothing less ends an accepted transfer. One
 * that was made after all, and whose log no reading has shown, is found here and recorded.
 */
export async function endOutlived(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; books: { ended: EndedBook; bound: BoundBook } },
): Promise<void> {
  const { finalNumber } = args.cursor;
  const final = await findBlock(deps.db, { chain: chain.chain, number: finalNumber });
  if (!final) return;
  const outlived = await listOutlived(deps.db, {
    chain: chain.chain,
    at: Math.floor(final.at.getTime() / 1000),
    limit: MOST,
  });
  if (outlived.length === 0) return;
  const used = await readUsed(chain, outlived, finalNumber);
  for (const transfer of outlived) {
    const made = used.has(transfer.id)
      ? await findMade(chain, transfer, { number: finalNumber, at: final.at })
      : undefined;
    if (made) await recordFound(deps, chain, made, args.books.bound);
    else await end(deps, transfer, args.books.ended);
  }
}

async function recordFound(deps: TransferDeps, chain: EvmChain, made: SeenTransfer, bound: BoundBook): Promise<void> {
  deps.log.warn({ chain: chain.chain, tx: made.txHash }, "a transfer had been made and no reading had shown it");
  const reading = { seen: [made], landed: [], bound };
  const count = await deps.db.transaction().execute((db) => recordBlocks(db, deps, chain, reading));
  count();
}

async function end(deps: TransferDeps, transfer: TransferRow, book: EndedBook): Promise<void> {
  const afterCommit = await deps.db.transaction().execute(async (db) => {
    const from = transfer.state as "ready" | "carried" | "awaited";
    const move = { ids: [transfer.id], from, to: "ended" as const, at: deps.now(), set: { due_at: null } };
    return (await moveRows(db, "transfer", move)).length === 0 ? undefined : await book(db, [transfer]);
  });
  if (!afterCommit) return;
  const { id, chain, purpose, state, last_trouble: trouble } = transfer;
  deps.log.warn({ transfer: id, trouble }, "a transfer's authorization has run out without it");
  deps.metrics.transferMoves.inc({ chain, purpose, from: state, to: "ended" });
  afterCommit();
}
