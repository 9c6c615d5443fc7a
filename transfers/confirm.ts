import { readBlock, readTransfers } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { ChainFault } from "../chains/faults.ts";
import { type Cursor, raiseFinal } from "../db/cursors.ts";
import { moveRows } from "../db/moves.ts";
import type { Db } from "../db/tables.ts";
import { finishTransactions } from "../db/transactions.ts";
import { type ConfirmedTransfer, listConfirmable } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";

/**
 * Books confirmed transfers in the transaction that confirms them, all or nothing. Gives what is to be done after the
 * commit (telling those who wait, counting).
 */
export type Book = (db: Db, confirmed: readonly ConfirmedTransfer[]) => Promise<() => void>;

/** Transfers confirmed in one database transaction. */
const CHUNK = 100;

/**
 * Confirms every included transfer that stands at the depth of the network's finality, and books it. Blocks that were
 * read in an earlier turn (up to `readBefore`) are read again first: what is called confirmed is still there.
 */
export async function confirmFinal(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; head: number; readBefore: number; book: Book },
): Promise<void> {
  const final = Math.min(await readFinalNumber(chain, args.head), args.cursor.number);
  if (final <= args.cursor.finalNumber) return;
  for (;;) {
    const confirmable = await listConfirmable(deps.db, { chain: chain.chain, upTo: final, limit: CHUNK });
    if (confirmable.length === 0) break;
    await readAgain(
      chain,
      confirmable.filter((transfer) => transfer.block_number <= args.readBefore),
    );
    const afterCommit = await deps.db.transaction().execute((db) => confirmChunk(deps, db, confirmable, args.book));
    afterCommit();
    if (confirmable.length < CHUNK) break;
  }
  await deps.db.transaction().execute(async (db) => {
    await finishTransactions(db, { chain: chain.chain, upTo: final });
    await raiseFinal(db, { chain: chain.chain, finalNumber: final });
  });
  args.cursor.finalNumber = final;
}

async function confirmChunk(
  deps: TransferDeps,
  db: Db,
  confirmable: readonly ConfirmedTransfer[],
  book: Book,
): Promise<() => void> {
  const moved = new Set(
    await moveRows(db, "transfer", {
      ids: confirmable.map(({ id }) => id),
      from: "included",
      to: "confirmed",
      at: deps.now(),
    }),
  );
  const confirmed = confirmable.filter(({ id }) => moved.has(id));
  for (const { chain, purpose } of confirmed)
    deps.metrics.transferMoves.inc({ chain, purpose, from: "included", to: "confirmed" });
  return book(db, confirmed);
}

/** The highest block that the network's policy calls final. */
async function readFinalNumber(chain: EvmChain, head: number): Promise<number> {
  const { finality } = chain.network;
  if (typeof finality === "object") return head - finality.blocks + 1;
  return (await readBlock(chain.rpc, finality)).number;
}

/** Reads the blocks of transfers once more. Throws ChainFault `rpc_behind` when one is not as it was: look again later. */
async function readAgain(chain: EvmChain, transfers: readonly ConfirmedTransfer[]): Promise<void> {
  const blocks = new Map(transfers.map((transfer) => [transfer.block_number, transfer.block_hash]));
  const tokens = [...chain.tokens.values()].map((token) => token.token);
  for (const [number, hash] of blocks) {
    const block = await readBlock(chain.rpc, number);
    if (block.hash !== hash)
      throw new ChainFault("rpc_behind", { detail: `block ${number} is another one than was read before` });
    const logs = new Set((await readTransfers(chain.rpc, block.hash, tokens)).map((log) => log.logIndex));
    const gone = transfers.find((transfer) => transfer.block_number === number && !logs.has(transfer.log_index));
    if (gone) throw new ChainFault("rpc_behind", { detail: `a log of block ${number} was not found again` });
  }
}
