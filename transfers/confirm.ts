import { readBlock, readTransfersBetween } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { ChainFault } from "../chains/faults.ts";
import type { SeenTransfer } from "../chains/movements.ts";
import { type Cursor, raiseFinal } from "../db/cursors.ts";
import { listKnownLogs, type StraySighting, takeStray } from "../db/sightings.ts";
import type { Db } from "../db/tables.ts";
import { finishTransactions, type SpentTransaction } from "../db/transactions.ts";
import { type ConfirmedTransfer, confirmTransfers, listConfirmable } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";
import { isOurs, listSources, markTags } from "./reading.ts";
import { type BoundBook, recordBlocks } from "./record.ts";

/**
 * Books confirmed transfers in the transaction that confirms them, all or nothing. Gives what is to be done after the
 * commit (telling those who wait, counting).
 */
export type Book = (db: Db, confirmed: readonly ConfirmedTransfer[]) => Promise<() => void>;

/** Books movements of the treasury's that belong to no transfer, in the transaction that marks them as booked. */
export type StrayBook = (db: Db, stray: readonly StraySighting[]) => Promise<void>;

/** Books what our transactions cost, in the transaction that calls them final. */
export type GasBook = (db: Db, spent: readonly SpentTransaction[]) => Promise<void>;

/** Transfers confirmed in one database transaction. */
const CHUNK = 100;

/**
 * Confirms every included transfer that stands at the depth of the network's finality, and books it. Blocks that were
 * read in an earlier turn (up to `readBefore`) are read again first: what is called confirmed is still there, and what
 * the first reading missed is found.
 */
export async function confirmFinal(
  deps: TransferDeps,
  chain: EvmChain,
  args: {
    cursor: Cursor;
    readBefore: number;
    books: { confirmed: Book; bound: BoundBook; stray: StrayBook; gas: GasBook };
  },
): Promise<void> {
  const { cursor } = args;
  const final = Math.min(await readFinalNumber(chain, cursor), cursor.number);
  const again = { from: cursor.finalNumber + 1, to: Math.min(final, args.readBefore) };
  if (again.from <= again.to) await readAgain(deps, chain, again, args.books.bound);
  for (;;) {
    const confirmable = await listConfirmable(deps.db, { chain: chain.chain, upTo: final, limit: CHUNK });
    if (confirmable.length === 0) break;
    await confirmChunk(deps, confirmable, { final, book: args.books.confirmed });
    if (confirmable.length < CHUNK) break;
  }
  await bookStray(deps, chain, { final, book: args.books.stray });
  if (final <= cursor.finalNumber) return;
  await deps.db.transaction().execute(async (db) => {
    const spent = await finishTransactions(db, { chain: chain.chain, upTo: final });
    if (spent.length > 0) await args.books.gas(db, spent);
    await raiseFinal(db, { chain: chain.chain, finalNumber: final });
  });
  cursor.finalNumber = final;
}

/** Movements of the treasury's that are final and belong to no transfer: late, wrong or double money. */
export async function bookStray(
  deps: TransferDeps,
  chain: Pick<EvmChain, "chain">,
  args: { final: number; book: StrayBook },
): Promise<void> {
  for (let full = true; full; ) {
    const stray = await deps.db.transaction().execute(async (db) => {
      const rows = await takeStray(db, { chain: chain.chain, upTo: args.final, limit: CHUNK });
      if (rows.length > 0) await args.book(db, rows);
      return rows;
    });
    for (const { tx_hash: tx, payer, receiver, token } of stray)
      deps.log.error(
        { chain: chain.chain, tx, payer, receiver, token },
        "money moved that belongs to no payment or payout",
      );
    full = stray.length === CHUNK;
  }
}

/** Confirms and books in one transaction; when one transfer cannot be booked, the others do not wait for it. */
export async function confirmChunk(
  deps: TransferDeps,
  confirmable: readonly { id: string }[],
  args: { final: number; book: Book },
): Promise<void> {
  const ids = confirmable.map(({ id }) => id);
  const finish = await deps.db
    .transaction()
    .execute(async (db) => {
      const confirmed = await confirmTransfers(db, { ids, upTo: args.final, at: deps.now() });
      return { confirmed, afterCommit: await args.book(db, confirmed) };
    })
    .catch((error: unknown) => {
      if (confirmable.length === 1) throw error;
      return { error };
    });
  if ("error" in finish) {
    const failed: unknown[] = [];
    for (const one of confirmable) await confirmChunk(deps, [one], args).catch((error: unknown) => failed.push(error));
    if (failed.length > 0) throw failed[0];
    return;
  }
  for (const { chain, purpose } of finish.confirmed)
    deps.metrics.transferMoves.inc({ chain, purpose, from: "included", to: "confirmed" });
  finish.afterCommit();
}

/** The highest block that the network's policy calls final, counted from what was read and linked, not from hearsay. */
async function readFinalNumber(chain: EvmChain, cursor: Cursor): Promise<number> {
  const { finality } = chain.network;
  if (typeof finality === "object") return cursor.number - finality.blocks + 1;
  return (await readBlock(chain.rpc, finality)).number;
}

/**
 * Reads a range of blocks once more, in one call. Throws ChainFault `rpc_behind` when something that is to be
 * confirmed is not in the answer; records what the first reading did not have.
 */
async function readAgain(
  deps: TransferDeps,
  chain: EvmChain,
  range: { from: number; to: number },
  bound: BoundBook,
): Promise<void> {
  const logs = await readTransfersBetween(chain.rpc, range, listSources(chain));
  const keyOf = (log: { blockHash: string; logIndex: number }) => `${log.blockHash} ${log.logIndex}`;
  const found = new Set(logs.map(keyOf));
  const confirmable = await listConfirmable(deps.db, { chain: chain.chain, upTo: range.to, limit: 10 * CHUNK });
  const gone = confirmable.find(
    (one) =>
      one.block_number >= range.from && !found.has(keyOf({ blockHash: one.block_hash, logIndex: one.log_index })),
  );
  if (gone) throw new ChainFault("rpc_behind", { detail: `a log of block ${gone.block_number} was not found again` });
  await recordMissed(deps, chain, logs, bound);
}

async function recordMissed(
  deps: TransferDeps,
  chain: EvmChain,
  logs: readonly SeenTransfer[],
  bound: BoundBook,
): Promise<void> {
  const ours = logs.filter((log) => isOurs(chain, log));
  const known = await listKnownLogs(deps.db, { chain: chain.chain, logs: ours });
  const seen = ours.filter((log) => !known.has(`${log.blockHash} ${log.logIndex}`));
  if (seen.length === 0) return;
  deps.log.warn({ chain: chain.chain, logs: seen.length }, "an endpoint had left logs out; they are recorded now");
  await markTags(chain, seen);
  const count = await deps.db.transaction().execute((db) => recordBlocks(db, deps, chain, { seen, landed: [], bound }));
  count();
}
