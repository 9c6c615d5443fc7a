import { type Block, readBlock, readHead } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { ChainFault } from "../chains/faults.ts";
import { type Chain, getChain } from "../chains/open.ts";
import { readNewestSlot } from "../chains/solana/reads.ts";
import {
  advanceCursor,
  type Cursor,
  ensureCursor,
  forgetBlocks,
  insertBlocks,
  isWatched,
  releaseCursor,
  renewCursor,
  takeCursor,
} from "../db/cursors.ts";
import type { FailedBookingRow } from "../db/failed-bookings.ts";
import type { Db } from "../db/tables.ts";
import { listWaiting } from "../db/transfers.ts";
import type { Books, Watched } from "./books.ts";
import { beginReading, endReading } from "./caught-up.ts";
import { confirmFinal } from "./confirm.ts";
import type { TransferDeps } from "./deps.ts";
import { readGap } from "./gap.ts";
import { endFruitless } from "./give-up.ts";
import { isLiveHead, maxHeadAge } from "./head-age.ts";
import { WATCH_LEASE_MS, WATCH_RENEW_MS } from "./lease.ts";
import { endOutlived } from "./outlive.ts";
import { readBlocks } from "./reading.ts";
import { type BoundBook, recordBlocks } from "./record.ts";
import { recoverLanes } from "./recover.ts";
import { followReorg } from "./reorg.ts";
import { beginRetries, endRetries } from "./retries.ts";
import { runSolanaTurn } from "./solana/turn.ts";
import { compareAssets, readUnreadAssets } from "./unread-assets.ts";

/** Blocks before the head at which a chain's watch begins the first time. */
const BEGIN_BEFORE = 32;
/** How long one turn waits for a new block, milliseconds. */
const PATIENCE_MS = 1_500;
/** Blocks read side by side and written together, when there are several. */
const READ_AHEAD = 16;
/** How often one turn reads on at most, so that a job ends in time however far behind it began. */
const TURN_LENGTH = 20;
/** Remembered blocks: deeper than any reorg that a finality policy lets happen. */
const REMEMBERED = 512;

/**
 * `mine` is false when another process has the watch and goes on there. `next` is the block to wait for, `moved` says
 * that blocks were read, `waiting` are transfers that wait for a lane, one of each sort.
 */
export type Turn =
  | { mine: false }
  | { mine: true; next: number; moved: boolean; waiting: readonly { id: string; smart_wallet: boolean }[] };

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
  const start = await takeCursor(deps.db, { chain: chain.chain, owner: deps.owner, leaseMs: WATCH_LEASE_MS });
  if (!start) return { mine: false };
  // One slow call of an endpoint may take longer than the lease.
  const renewing = setInterval(
    () => void renewCursor(deps.db, start, WATCH_LEASE_MS).catch(() => undefined),
    WATCH_RENEW_MS,
  );
  const watched: Watched = { cursor: start };
  let epoch: string | undefined;
  try {
    epoch = await beginReading(deps, chain.chain, () => readNewest(chain)).catch((error: unknown) => {
      deps.log.warn({ err: error, chain: chain.chain }, "how far the chain has to be read again is not known yet");
      return undefined;
    });
    const hasUnread = await compareAssets(deps, chain, start);
    await (chain.family === "evm"
      ? runTurn(deps, chain, watched, { ...args, hasUnread })
      : runSolanaTurn(deps, chain, watched, args));
  } finally {
    clearInterval(renewing);
    if (epoch !== undefined && watched.readUpTo !== undefined)
      await endReading(deps, { chain: chain.chain, epoch, upTo: watched.readUpTo }).catch(() => undefined);
    await releaseCursor(deps.db, start, watched);
  }
  const { number } = watched.cursor;
  const moved = number !== start.number;
  const waiting = moved ? await listWaiting(deps.db, { chain: chain.chain, now: deps.now() }) : [];
  return { mine: true, next: number + 1, moved, waiting };
}

async function runTurn(
  deps: TransferDeps,
  chain: EvmChain,
  watched: Watched,
  { signal, books, hasUnread }: { signal: AbortSignal; books: Books; hasUnread: boolean },
): Promise<void> {
  const readBefore = watched.cursor.number;
  const head = await waitForBlock(deps, chain, { number: readBefore + 1, signal });
  deps.metrics.headBlock.set({ chain: chain.chain }, head.number);
  const standing = head.number <= readBefore ? await checkStanding(deps, chain, watched.cursor) : undefined;
  if (standing) watched.cursor = standing.cursor;
  let again = readBefore;
  const confirm = () => confirmFinal(deps, chain, { cursor: watched.cursor, readBefore: again, books });
  const troubles: unknown[] = [];
  // What cannot be confirmed or ended now must not keep new blocks from being read, nor stuck transactions from help.
  const attempt = (step: () => Promise<unknown>) => step().catch((error: unknown) => troubles.push(error));
  let tried: FailedBookingRow[] = [];
  await attempt(async () => {
    tried = await beginRetries(deps, chain, { cursor: watched.cursor, bound: books.bound });
  });
  // An endpoint that is behind the cursor says nothing about the head.
  let newest = head.number === readBefore ? standing?.at : undefined;
  for (let reads = 0; watched.cursor.number < head.number && reads < TURN_LENGTH; reads += 1) {
    const { number } = watched.cursor;
    const read = await readOn(deps, chain, { cursor: watched.cursor, head, bound: books.bound });
    watched.cursor = read.cursor;
    newest = read.at;
    // More than are read one by one: a range, which is read again before anything in it is confirmed.
    if (watched.cursor.number > number + READ_AHEAD) again = watched.cursor.number;
    await attempt(confirm);
  }
  if (newest && watched.cursor.number === head.number) {
    noteHeadTime(deps, chain, newest, { isNew: head.number > readBefore });
    if (isLiveHead(chain.network, newest, deps.now())) {
      watched.reachedHeadAt = head.askedAt;
      watched.readUpTo = watched.cursor.number;
    }
  }
  if (watched.cursor.number === readBefore) await attempt(confirm);
  if (hasUnread) await attempt(() => readUnreadAssets(deps, chain, { cursor: watched.cursor, bound: books.bound }));
  await attempt(() => endOutlived(deps, chain, { cursor: watched.cursor, books }));
  await attempt(() => endFruitless(deps, chain, books.failed));
  await attempt(() => recoverLanes(deps, chain));
  if (troubles.length > 0) throw troubles[0];
  await endRetries(deps, tried);
}

/** Starts the cursor of a chain that was never watched, some blocks before its newest, so that a reorg finds its parent. */
export async function startWatch(deps: TransferDeps, chain: EvmChain): Promise<void> {
  if (await isWatched(deps.db, chain.chain)) return;
  const head = await readHead(chain.rpc);
  const block = await readBlock(chain.rpc, Math.max(0, head - BEGIN_BEFORE));
  await deps.db.transaction().execute(async (db) => {
    const { number, hash } = block;
    const assets = [...chain.tokens.keys()];
    const fresh = await ensureCursor(db, { chain: chain.chain, number, hash, dueAt: deps.now(), assets });
    if (fresh) await rememberBlocks(db, chain, { by: null, blocks: [block], keepFrom: 0 });
  });
}

/**
 * No new block: makes sure that the one under the cursor is still there. A reorg need not make the chain longer. `at` is
 * that block's time when it is.
 */
async function checkStanding(
  deps: TransferDeps,
  chain: EvmChain,
  cursor: Cursor,
): Promise<{ cursor: Cursor; at: Date | undefined }> {
  const block = await readBlock(chain.rpc, cursor.number).catch((error: unknown) => {
    // An endpoint that does not know our block yet lags, and says nothing about a reorg.
    if (error instanceof ChainFault && error.code === "rpc_behind") return undefined;
    throw error;
  });
  if (block === undefined || block.hash === cursor.hash) return { cursor, at: block?.at };
  return { cursor: await followReorg(deps, chain, cursor), at: undefined };
}

/** The newest block that an endpoint knows, and when it was asked: all that is in later blocks has come after that. */
type Head = { number: number; askedAt: Date };

/** The head, as soon as it is at a height or patience ends. */
async function waitForBlock(
  deps: TransferDeps,
  chain: EvmChain,
  wanted: { number: number; signal: AbortSignal },
): Promise<Head> {
  const patience = performance.now() + PATIENCE_MS;
  for (;;) {
    const askedAt = deps.now();
    const number = await readHead(chain.rpc);
    if (number >= wanted.number || wanted.signal.aborted || performance.now() >= patience) return { number, askedAt };
    await new Promise((resolve) => setTimeout(resolve, chain.network.pollMs));
  }
}

/** Compares our clock with the chain's. Where blocks come on demand, an old one says nothing. */
function noteHeadTime(deps: TransferDeps, chain: EvmChain, at: Date, { isNew }: { isNew: boolean }): void {
  if (!isNew && maxHeadAge(chain.network) === undefined) return;
  deps.metrics.clockSkew.set({ against: chain.chain }, (deps.now().getTime() - at.getTime()) / 1_000);
}

/** Reads the blocks after the cursor, or follows a reorg when they do not stand on it. `at` is the last one's time. */
async function readOn(
  deps: TransferDeps,
  chain: EvmChain,
  { cursor, head, bound }: { cursor: Cursor; head: Head; bound: BoundBook },
): Promise<{ cursor: Cursor; at: Date | undefined }> {
  // With one endpoint from beginning to end, so that another one can be asked for a second opinion.
  const { by, value: reading } = await chain.readWithOne(async (rpc) => {
    const believed = { ...chain, rpc };
    const to = Math.min(head.number, cursor.number + READ_AHEAD);
    return (
      (await readGap(deps, believed, { from: cursor, head: head.number })) ??
      (await readBlocks(deps, believed, { from: cursor, to }))
    );
  });
  const last = reading?.blocks.at(-1);
  if (!reading || !last) return { cursor: await followReorg(deps, chain, cursor), at: undefined };
  const isHead = last.number >= head.number && isLiveHead(chain.network, last.at, deps.now());
  const count = await deps.db.transaction().execute(async (db) => {
    // First: whoever cannot move the cursor has been overtaken and writes nothing.
    // Payouts wait for a watcher that stands at the head, and what is confirmed in this turn may be paid out at once.
    const reached = { reachedHeadAt: isHead ? head.askedAt : undefined, chainTime: last.at };
    const ok = await advanceCursor(db, cursor, { ...last, ...reached, leaseMs: WATCH_LEASE_MS });
    if (!ok) return undefined;
    await rememberBlocks(db, chain, {
      by,
      blocks: reading.blocks,
      keepFrom: Math.min(last.number - REMEMBERED, cursor.finalNumber),
    });
    return recordBlocks(db, deps, chain, { ...reading, bound });
  });
  if (!count) throw new ChainFault("rpc_behind", { detail: `another watcher has moved the cursor of ${chain.chain}` });
  count();
  return { cursor: { ...cursor, number: last.number, hash: last.hash }, at: last.at };
}

/** Remembers blocks, and now and then forgets those below both the final one and a depth that nobody asks for. */
async function rememberBlocks(
  db: Db,
  chain: EvmChain,
  args: { by: string | null; blocks: readonly Block[]; keepFrom: number },
): Promise<void> {
  const rows = args.blocks.map(({ number, hash, parentHash, baseFee, at }) => ({
    ...{ chain: chain.chain, number, hash, parent_hash: parentHash, base_fee: baseFee, at, read_by: args.by },
  }));
  await insertBlocks(db, rows);
  if (args.blocks.some(({ number }) => number % REMEMBERED === 0))
    await forgetBlocks(db, { chain: chain.chain, below: args.keepFrom });
}

/** The newest height of a chain, whatever its depth. */
function readNewest(chain: Chain): Promise<number> {
  return chain.family === "evm" ? readHead(chain.rpc) : readNewestSlot(chain);
}
