import { readBlock, readTransfersBetween } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { type Range, readInParts } from "../chains/evm/ranges.ts";
import type { Rpc } from "../chains/evm/rpc.ts";
import { ChainFault } from "../chains/faults.ts";
import type { SeenTransfer } from "../chains/movements.ts";
import type { Chain } from "../chains/open.ts";
import { type Cursor, raiseFinal } from "../db/cursors.ts";
import { listKnownLogs } from "../db/sightings.ts";
import type { Db } from "../db/tables.ts";
import { finishTransactions, listFinishable, type SpentTransaction } from "../db/transactions.ts";
import { type ConfirmedTransfer, confirmTransfers, listConfirmable, listProofsBetween } from "../db/transfers.ts";
import { openAgreement } from "./agreement.ts";
import type { TransferDeps } from "./deps.ts";
import { bookEach } from "./failed-bookings.ts";
import { isOurs, listSources, markTags, markTimes } from "./reading.ts";
import { type BoundBook, keepRecordable, recordBlocks } from "./record.ts";
import { followReorg } from "./reorg.ts";
import { bookDust, bookStray, type DustBook, type StrayBook } from "./unmatched.ts";
import {
  isDisagreement,
  isPatienceOver,
  listRuns,
  listWitnesses,
  noteDisagreement,
  noteWitnessed,
  type Run,
  readWitnessed,
} from "./witness.ts";

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
 * Confirms every included transfer that stands at the depth of the network's finality, and books it. What was read is read
 * again first: what is called confirmed is still there, and what the first reading missed is found. Where a chain has
 * several endpoints, another one than the first time reads it, and says how far the chain is final (see witness.ts); with
 * one, that reads again what it had read in an earlier turn (up to `readBefore`). Blocks are read in parts; each is booked
 * and noted as final before the next is read.
 */
export async function confirmFinal(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; readBefore: number; books: FinalBooks },
): Promise<void> {
  const { cursor, books } = args;
  const final = Math.min(await readFinalNumber(chain, cursor), cursor.number);
  const before = cursor.finalNumber;
  const budget = { parts: MOST_PARTS };
  if (chain.endpoints.length > 1) await confirmWitnessed(deps, chain, { ...args, final, budget });
  else await confirmAgain(deps, chain, { cursor, to: Math.min(final, args.readBefore), books, budget, rpc: chain.rpc });
  const isHeld = chain.endpoints.length > 1 && cursor.finalNumber < final;
  if (budget.parts === 0 || isHeld) {
    // What was claimed since, or could not be booked, may be below what is final already.
    if (cursor.finalNumber === before) await bookUpTo(deps, chain, { cursor, final: before, books });
    return;
  }
  // Also where finality stands still.
  if (cursor.finalNumber === before || cursor.finalNumber < final)
    await bookUpTo(deps, chain, { cursor, final, books });
}

/** Reads what is not final yet up to a height with one endpoint, and books it, as far as the budget of this pass goes. */
async function confirmAgain(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; to: number; books: FinalBooks; budget: { parts: number }; rpc: Rpc },
): Promise<void> {
  const { cursor, to, books, budget, rpc } = args;
  const range = { from: cursor.finalNumber + 1, to };
  const sources = listSources(chain);
  for await (const { part, found } of readInParts(range, (one) => readTransfersBetween(rpc, one, sources))) {
    await requireProofs(deps, chain, part, found);
    await recordMissed(deps, { ...chain, rpc }, found, books.bound);
    await bookUpTo(deps, chain, { cursor, final: part.to, books });
    budget.parts -= 1;
    if (budget.parts === 0) return;
  }
}

/**
 * The same with other endpoints than those of the first reading. One that does not answer, or does not come after in time,
 * is passed over: then what it should have said is not waited for, but for large amounts. One that shows something else
 * stops the chain, unless yet another one agrees.
 */
async function confirmWitnessed(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; readBefore: number; final: number; books: FinalBooks; budget: { parts: number } },
): Promise<void> {
  const { cursor, final, books, budget } = args;
  for (const run of await listRuns(deps, chain, { from: cursor.finalNumber + 1, to: final })) {
    let disagreement: unknown;
    let hasAnswered = false;
    for (const witness of listWitnesses(chain, run.readBy)) {
      if (cursor.finalNumber >= run.to || budget.parts === 0) break;
      try {
        const to = await readWitnessed(deps, chain, witness, run.to);
        hasAnswered = true;
        await confirmAgain(deps, chain, { cursor, to, books, budget, rpc: witness.rpc });
      } catch (error) {
        if (!(error instanceof ChainFault) || !error.transient) throw error;
        if (error.code === "rpc_behind") hasAnswered = true;
        if (!isDisagreement(error)) continue;
        noteDisagreement(deps, chain, witness, error);
        disagreement = error;
      }
    }
    if (budget.parts === 0) return;
    if (cursor.finalNumber >= run.to) noteWitnessed(chain);
    else if (disagreement !== undefined) {
      await unbelieve(deps, chain, { cursor, run });
      throw disagreement;
    } else if (!hasAnswered || isPatienceOver(deps, chain)) await goOnAlone(deps, chain, { ...args, to: run.to });
    else return;
  }
}

/**
 * Another endpoint has shown something else than was read. When the one that was believed does not show it either any more,
 * the blocks are read anew; while it does, nobody is believed.
 */
async function unbelieve(
  deps: TransferDeps,
  chain: EvmChain,
  { cursor, run }: { cursor: Cursor; run: Run },
): Promise<void> {
  const reader = chain.endpoints.find(({ name }) => name === run.readBy);
  if (!reader) return;
  const range = { from: cursor.finalNumber + 1, to: run.to };
  try {
    await readWitnessed(deps, chain, reader, run.to);
    const parts = readInParts(range, (part) => readTransfersBetween(reader.rpc, part, listSources(chain)));
    for await (const { part, found } of parts) await requireProofs(deps, chain, part, found);
  } catch (error) {
    if (isDisagreement(error)) Object.assign(cursor, await followReorg(deps, chain, cursor, range.from));
    else if (!(error instanceof ChainFault) || !error.transient) throw error;
  }
}

/** No other endpoint has answered in time: what one has read it reads again itself, as where there is only one. */
async function goOnAlone(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; readBefore: number; to: number; books: FinalBooks; budget: { parts: number } },
): Promise<void> {
  const { cursor, readBefore, to, books, budget } = args;
  deps.metrics.unwitnessedReads.inc({ chain: chain.chain });
  deps.log.warn({ chain: chain.chain, upTo: to }, "no second endpoint answers: one is believed but for large amounts");
  await confirmAgain(deps, chain, { cursor, to: Math.min(to, readBefore), books, budget, rpc: chain.rpc });
  if (cursor.finalNumber < to && budget.parts > 0) await bookUpTo(deps, chain, { cursor, final: to, books });
}

/** Who books what has become final. */
type FinalBooks = { confirmed: Book; bound: BoundBook; stray: StrayBook; dust: DustBook; gas: GasBook };

/** Books everything up to a height that has been read for good, and then notes the height as final. */
async function bookUpTo(
  deps: TransferDeps,
  chain: EvmChain,
  { cursor, final, books }: { cursor: Cursor; final: number; books: FinalBooks },
): Promise<void> {
  const agreement = openAgreement(deps, chain);
  const held: string[] = [];
  for (let full = true; full; ) {
    const listed = await listConfirmable(deps.db, { chain: chain.chain, upTo: final, limit: CHUNK, except: held });
    const confirmable = await agreement.keepTransfers(listed);
    held.push(...listed.flatMap((one) => (confirmable.includes(one) ? [] : [one.id])));
    await confirmChunk(deps, chain, confirmable, { final, book: books.confirmed });
    full = listed.length === CHUNK;
  }
  await bookStray(deps, chain, { final, book: books.stray, keepAgreed: agreement.keepMovements });
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

/**
 * Throws ChainFault `endpoints_disagree` when a second reading of some blocks does not show what is to be booked of them;
 * `rpc_behind` where the same endpoint has read both times.
 */
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
  if (!gone) return;
  const detail = `a log of block ${gone.blockNumber} was not found again`;
  throw new ChainFault(chain.endpoints.length > 1 ? "endpoints_disagree" : "rpc_behind", { detail });
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
