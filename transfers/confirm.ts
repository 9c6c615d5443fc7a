import { readBlock, readTransfersBetween } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { type Range, readInParts } from "../chains/evm/ranges.ts";
import { ChainFault } from "../chains/faults.ts";
import type { SeenTransfer } from "../chains/movements.ts";
import type { Chain } from "../chains/open.ts";
import { type Cursor, raiseFinal } from "../db/cursors.ts";
import { listKnownLogs } from "../db/sightings.ts";
import type { Db } from "../db/tables.ts";
import { finishTransactions, listFinishable, type SpentTransaction } from "../db/transactions.ts";
import { type ConfirmedTransfer, confirmTransfers, listConfirmable, listProofsBetween } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";
import { bookEach } from "./failed-bookings.ts";
import { isOurs, listSources, markTags, markTimes } from "./reading.ts";
import { type BoundBook, keepRecordable, recordBlocks } from "./record.ts";
import { bookDust, bookStray, type DustBook, type StrayBook } from "./unmatched.ts";

/**
 * Books confirmed transfers in the transaction that confirms them, all or nothing. Gives what is to be done after the
 * commit (telling those who wait, counting).
 */
export type Book = (db: Db, confirmed: readonly ConfirmedTransfer[]) => Promise<() => void>;

/** Books what our transactions cost, in the transaction that calls them final. */
export type GasBook = (db: Db, spent: readonly SpentTransaction[]) => Promise<void>;

/** Rows booked in one database transaction. */
const CHUNK = 100;

/** Parts of a range that are read again in one pass at most, so that a pass ends however far finality has come. */
const MOST_PARTS = 20;

/**
 * Confirms every included transfer that stands at the depth of the network's finality, and books it. Blocks that were
 * read in an earlier turn (up to `readBefore`) are read again first: what is called confirmed is still there, and what
 * the first reading missed is found. They are read in parts; each is booked and noted as final before the next is read.
 */
export async function confirmFinal(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; readBefore: number; books: FinalBooks },
): Promise<void> {
  const { cursor, books } = args;
  const final = Math.min(await readFinalNumber(chain, cursor), cursor.number);
  const again = { from: cursor.finalNumber + 1, to: Math.min(final, args.readBefore) };
  const sources = listSources(chain);
  let [reached, parts] = [-1, 0];
  for await (const { part, found } of readInParts(again, (one) => readTransfersBetween(chain.rpc, one, sources))) {
    await requireProofs(deps, chain, part, found);
    await recordMissed(deps, chain, found, books.bound);
    await bookUpTo(deps, chain, { cursor, final: part.to, books });
    [reached, parts] = [part.to, parts + 1];
    if (parts === MOST_PARTS && reached < again.to) return;
  }
  // Also where finality stands still: what was claimed since, or could not be booked, may be below it.
  if (reached !== final) await bookUpTo(deps, chain, { cursor, final, books });
}

/** Who books what has become final. */
type FinalBooks = { confirmed: Book; bound: BoundBook; stray: StrayBook; dust: DustBook; gas: GasBook };

/** Books everything up to a height that has been read for good, and then notes the height as final. */
async function bookUpTo(
  deps: TransferDeps,
  chain: EvmChain,
  { cursor, final, books }: { cursor: Cursor; final: number; books: FinalBooks },
): Promise<void> {
  for (let full = true; full; ) {
    const confirmable = await listConfirmable(deps.db, { chain: chain.chain, upTo: final, limit: CHUNK });
    await confirmChunk(deps, chain, confirmable, { final, book: books.confirmed });
    full = confirmable.length === CHUNK;
  }
  await bookStray(deps, chain, { final, book: books.stray });
  if (final <= cursor.finalNumber) return;
  await bookDust(deps, chain, { final, book: books.dust });
  await bookGas(deps, chain, { final, book: books.gas });
  await deps.db.transaction().execute(async (db) => {
    await raiseFinal(db, { chain: chain.chain, finalNumber: final });
  });
  cursor.finalNumber = final;
}

/** Transactions of ours in blocks up to a height are final, and what they have cost is booked. */
async function bookGas(
  deps: TransferDeps,
  chain: EvmChain,
  { final, book }: { final: number; book: GasBook },
): Promise<void> {
  for (let full = true; full; ) {
    const rows = await listFinishable(deps.db, { chain: chain.chain, upTo: final, limit: CHUNK });
    const finish = async (db: Db, hashes: readonly string[]) => {
      const spent = await finishTransactions(db, { chain: chain.chain, upTo: final, hashes });
      if (spent.length > 0) await book(db, spent);
      return () => undefined;
    };
    await bookEach(deps, { chain: chain.chain, kind: "transaction", rows, subjectOf: (hash) => hash, book: finish });
    full = rows.length === CHUNK;
  }
}

/** Confirms and books in one transaction; a transfer that cannot be booked is stored as a failed booking, alone. */
export async function confirmChunk(
  deps: TransferDeps,
  { chain }: Pick<Chain, "chain">,
  confirmable: readonly { id: string }[],
  args: { final: number; book: Book },
): Promise<void> {
  const book = async (db: Db, rows: readonly { id: string }[]) => {
    const ids = rows.map(({ id }) => id);
    const confirmed = await confirmTransfers(db, { ids, upTo: args.final, at: deps.now() });
    const afterCommit = await args.book(db, confirmed);
    return () => {
      for (const { purpose } of confirmed)
        deps.metrics.transferMoves.inc({ chain, purpose, from: "included", to: "confirmed" });
      afterCommit();
    };
  };
  await bookEach(deps, { chain, kind: "transfer", rows: confirmable, subjectOf: ({ id }) => id, book });
}

/** The highest block that the network's policy calls final, counted from what was read and linked, not from hearsay. */
async function readFinalNumber(chain: EvmChain, cursor: Cursor): Promise<number> {
  const { finality } = chain.network;
  if (typeof finality === "object") return cursor.number - finality.blocks + 1;
  return (await readBlock(chain.rpc, finality)).number;
}

/** Throws ChainFault `rpc_behind` when a second reading of some blocks does not show what is to be confirmed in them. */
async function requireProofs(
  deps: TransferDeps,
  chain: EvmChain,
  part: Range,
  found: readonly SeenTransfer[],
): Promise<void> {
  const keyOf = (log: { blockHash: string; logIndex: number }) => `${log.blockHash} ${log.logIndex}`;
  const standing = new Set(found.map(keyOf));
  const proofs = await listProofsBetween(deps.db, { chain: chain.chain, ...part });
  const gone = proofs.find((proof) => !standing.has(keyOf(proof)));
  if (gone) throw new ChainFault("rpc_behind", { detail: `a log of block ${gone.blockNumber} was not found again` });
}

/** Records what the first reading of some blocks did not have. */
export async function recordMissed(
  deps: TransferDeps,
  chain: EvmChain,
  logs: readonly SeenTransfer[],
  bound: BoundBook,
): Promise<void> {
  const ours = logs.filter((log) => isOurs(chain, log));
  const known = await listKnownLogs(deps.db, { chain: chain.chain, logs: ours });
  const missed = ours.filter((log) => !known.has(`${log.blockHash} ${log.logIndex}`));
  const seen = await keepRecordable(deps.db, chain, missed);
  if (seen.length === 0) return;
  deps.log.warn({ chain: chain.chain, logs: seen.length }, "an endpoint had left logs out; they are recorded now");
  await markTags(chain, seen);
  await markTimes(deps, chain, seen);
  const count = await deps.db.transaction().execute((db) => recordBlocks(db, deps, chain, { seen, landed: [], bound }));
  count();
}
