import { type Block, readBlock, readHead } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { ChainFault } from "../chains/faults.ts";
import { getChain } from "../chains/open.ts";
import {
  advanceCursor,
  type Cursor,
  ensureCursor,
  forgetBlocks,
  insertBlocks,
  releaseCursor,
  takeCursor,
} from "../db/cursors.ts";
import type { Db } from "../db/tables.ts";
import { type Book, confirmFinal } from "./confirm.ts";
import type { TransferDeps } from "./deps.ts";
import { type EndedBook, endOutlived } from "./outlive.ts";
import { readBlocks } from "./reading.ts";
import { recordBlocks } from "./record.ts";
import { recoverLanes } from "./recover.ts";
import { followReorg } from "./reorg.ts";

/** A watch is somebody else's when its owner has not been heard of for this long, milliseconds. */
const LEASE_MS = 3_000;
/** How long one turn waits for a new block, milliseconds; shorter than the lease. */
const PATIENCE_MS = 1_500;
/** Blocks read side by side and written together, when there are several. */
const READ_AHEAD = 16;
/** How often one turn reads on at most, so that a job ends in time however far behind it began. */
const TURN_LENGTH = 20;
/** Remembered blocks: deeper than any reorg that a finality policy lets happen. */
const REMEMBERED = 512;

/** `mine` is false when another process has the watch and goes on there; `next` is the block to wait for. */
export type Turn = { mine: false } | { mine: true; next: number; moved: boolean };

/** Who books what the watcher finds, in the database transaction that moves the transfers. */
export type Books = { confirmed: Book; ended: EndedBook };

/**
 * One turn of the one watcher of a chain: waits for a block beyond the cursor, reads every new one, confirms what has
 * become final, ends what can no longer come, and looks after stuck transactions. What it costs depends on blocks, not
 * on how much is in flight.
 */
export async function watchChain(
  deps: TransferDeps,
  args: { chain: string; signal: AbortSignal; books: Books },
): Promise<Turn> {
  const chain = getChain(deps.chains, args.chain);
  let cursor = await takeCursor(deps.db, {
    chain: chain.chain,
    owner: deps.owner,
    now: deps.now(),
    until: lease(deps),
  });
  if (!cursor) return { mine: false };
  const start = cursor;
  const { confirmed: book, ended } = args.books;
  let reachedHeadAt: Date | undefined;
  try {
    const head = await waitForBlock(chain, cursor.number + 1, args.signal);
    deps.metrics.headBlock.set({ chain: chain.chain }, head);
    if (head <= cursor.number) cursor = await checkStanding(deps, chain, cursor);
    for (let reads = 0; cursor.number < head && reads < TURN_LENGTH; reads += 1) {
      cursor = await readOn(deps, chain, cursor, head);
      await confirmFinal(deps, chain, { cursor, head, readBefore: start.number, book });
    }
    if (cursor === start) await confirmFinal(deps, chain, { cursor, head, readBefore: start.number, book });
    await endOutlived(deps, chain, { cursor, book: ended });
    await recoverLanes(deps, chain);
    if (cursor.number >= head) reachedHeadAt = deps.now();
  } finally {
    await releaseCursor(deps.db, { chain: chain.chain, owner: deps.owner, reachedHeadAt });
  }
  return { mine: true, next: cursor.number + 1, moved: cursor.number !== start.number };
}

/** Starts the cursor of a chain that was never watched, at its newest block. */
export async function startWatch(deps: TransferDeps, chain: EvmChain): Promise<void> {
  const block = await readBlock(chain.rpc, "latest");
  await deps.db.transaction().execute(async (db) => {
    const fresh = await ensureCursor(db, {
      chain: chain.chain,
      number: block.number,
      hash: block.hash,
      dueAt: deps.now(),
    });
    if (fresh) await rememberBlocks(db, chain, [block]);
  });
}

/** No new block: makes sure that the one under the cursor is still there. A reorg need not make the chain longer. */
async function checkStanding(deps: TransferDeps, chain: EvmChain, cursor: Cursor): Promise<Cursor> {
  const block = await readBlock(chain.rpc, cursor.number).catch((error: unknown) => {
    // An endpoint that does not know our block yet lags, and says nothing about a reorg.
    if (error instanceof ChainFault && error.code === "rpc_behind") return undefined;
    throw error;
  });
  return block === undefined || block.hash === cursor.hash ? cursor : followReorg(deps, chain, cursor);
}

/** The head, as soon as it is at a height or patience ends. */
async function waitForBlock(chain: EvmChain, number: number, signal: AbortSignal): Promise<number> {
  const patience = Date.now() + PATIENCE_MS;
  for (;;) {
    const head = await readHead(chain.rpc);
    if (head >= number || signal.aborted || Date.now() >= patience) return head;
    await new Promise((resolve) => setTimeout(resolve, chain.network.pollMs));
  }
}

/** Reads the blocks after the cursor, or follows a reorg when they do not stand on it. */
async function readOn(deps: TransferDeps, chain: EvmChain, cursor: Cursor, head: number): Promise<Cursor> {
  const reading = await readBlocks(deps, chain, { from: cursor, to: Math.min(head, cursor.number + READ_AHEAD) });
  const last = reading?.blocks.at(-1);
  if (!reading || !last) return followReorg(deps, chain, cursor);
  const count = await deps.db.transaction().execute(async (db) => {
    // First: whoever cannot move the cursor has been overtaken and writes nothing.
    const ok = await advanceCursor(db, { chain: chain.chain, from: cursor, to: last, until: lease(deps) });
    if (!ok) return undefined;
    await rememberBlocks(db, chain, reading.blocks);
    return recordBlocks(db, deps, chain, reading);
  });
  if (!count) throw new ChainFault("rpc_behind", { detail: `another watcher has moved the cursor of ${chain.chain}` });
  count();
  return { ...cursor, number: last.number, hash: last.hash };
}

async function rememberBlocks(db: Db, chain: EvmChain, blocks: readonly Block[]): Promise<void> {
  await insertBlocks(
    db,
    blocks.map(({ number, hash, parentHash, baseFee, at }) => ({
      chain: chain.chain,
      number,
      hash,
      parent_hash: parentHash,
      base_fee: baseFee,
      at,
    })),
  );
  const round = blocks.find(({ number }) => number % REMEMBERED === 0);
  if (round) await forgetBlocks(db, { chain: chain.chain, below: round.number - REMEMBERED });
}

function lease(deps: TransferDeps): Date {
  return new Date(deps.now().getTime() + LEASE_MS);
}
