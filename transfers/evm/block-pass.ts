import { ChainError } from "../../chains/errors.ts";
import { type Block, readBlock, readHead } from "../../chains/evm/blocks.ts";
import type { Rpc } from "../../chains/evm/evm-rpc.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readFromReadable } from "../../chains/evm/readable-answers.ts";
import { findHeight } from "../../chains/find-height.ts";
import { findLostSince } from "../../db/epoch.ts";
import {
  advanceCursor,
  type Cursor,
  deleteBlocks,
  ensureCursor,
  insertBlocks,
  isWatched,
} from "../../db/queries/chain-cursors.ts";
import type { FailedBookingRow } from "../../db/queries/failed-bookings.ts";
import { transactByRows } from "../../db/savepoint.ts";
import type { Db } from "../../db/tables.ts";
import type { BookingHandlers, WatchProgress } from "../booking-handlers.ts";
import { isLiveHead, maxHeadAge } from "../head-age.ts";
import { noteHead } from "../note-head.ts";
import { type BookUnsolicited, recordBlocks } from "../record-movements.ts";
import { relayWaiting } from "../relay-waiting.ts";
import { beginBookingRetries, endBookingRetries } from "../retry-bookings.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { WATCH_LEASE_MS } from "../watch-lease.ts";
import { backfillAssets } from "./backfill-assets.ts";
import { confirmFinal } from "./confirm-final.ts";
import { endUnproductiveTransfers } from "./end-fruitless.ts";
import { endExpiredAuthorizations } from "./expire-authorizations.ts";
import { followReorg } from "./follow-reorg.ts";
import { noteInclusion } from "./forming-batches.ts";
import { readUnlessIncomplete } from "./incomplete-endpoints.ts";
import { markFinal } from "./mark-final.ts";
import { readBlocks } from "./read-blocks.ts";
import { type GapReceipts, readGap, readIncludedOf } from "./read-gap.ts";
import { recoverLanes } from "./recover-lanes.ts";

/** The first watch of a chain starts this many blocks before the head. */
const START_BEFORE_HEAD = 32;
/** How long one pass reads blocks as they come, milliseconds. */
const PASS_MS = 1_500;
/** Blocks that are read concurrently and stored together at most. */
const READ_AHEAD = 16;
/** Reads up to one head at most, so that a job ends in time regardless of how far behind it started. */
const MAX_READS = 20;
/** Stored blocks: deeper than any reorg that a finality policy allows. */
const STORED_BLOCKS = 512;

/**
 * Makes the part of a watcher's pass that reads blocks. For a limited time, waits for a block beyond the cursor, reads every
 * new one, and confirms what is final. Then ends transfers that can no longer happen, and recovers stuck transactions.
 */
export async function runBlockPass(
  deps: TransferDeps,
  chain: EvmChain,
  watched: WatchProgress,
  { signal, handlers, hasUnread }: { signal: AbortSignal; handlers: BookingHandlers; hasUnread: boolean },
): Promise<void> {
  const until = performance.now() + PASS_MS;
  const errors: unknown[] = [];
  // A step that fails must not keep new blocks from being read, nor stuck transactions from being recovered.
  const attempt = (step: () => Promise<unknown>) => step().catch((error: unknown) => errors.push(error));
  let tried: FailedBookingRow[] = [];
  await attempt(async () => {
    const readLanded = (due: readonly FailedBookingRow[]) => readIncludedOf(deps, chain, watched.cursor, due);
    tried = await beginBookingRetries(deps, chain, { unsolicited: handlers.unsolicited, readLanded });
  });
  const finalBefore = watched.cursor.finalNumber;
  const otherChain: ChainError[] = [];
  await attempt(async () => {
    let waitsFirst = false;
    for (let isFirst = true; ; isFirst = false) {
      const head = await waitForBlock(deps, chain, { cursor: watched.cursor, signal, until, waitsFirst });
      waitsFirst = head.newest !== undefined;
      if (!isFirst && head.number === watched.cursor.number && !head.isAnnounced) break;
      await readUpTo(deps, chain, watched, { head, handlers, attempt }).catch((error: unknown) => {
        if (error instanceof ChainError && error.code === "wrong_chain") otherChain.push(error);
        throw error;
      });
      if (signal.aborted || errors.length > 0 || watched.cursor.number < head.number || performance.now() >= until)
        break;
    }
  });
  // Also when a read has failed: what is confirmed need not be read again.
  if (watched.cursor.finalNumber > finalBefore)
    await attempt(() => markFinal(deps, chain, { cursor: watched.cursor, handlers }));
  // Another chain does not show whether authorizations and nonces were used on this one.
  if (otherChain.length > 0) throw otherChain[0];
  if (hasUnread)
    await attempt(() => backfillAssets(deps, chain, { cursor: watched.cursor, unsolicited: handlers.unsolicited }));
  await attempt(() => endExpiredAuthorizations(deps, chain, { cursor: watched.cursor, signal, handlers }));
  await attempt(() => endUnproductiveTransfers(deps, chain, handlers.failed));
  await attempt(() => recoverLanes(deps, chain, { cursor: watched.cursor, unsolicited: handlers.unsolicited }));
  if (errors.length > 0) throw errors[0];
  await endBookingRetries(deps, tried);
}

/** Reads the blocks after the cursor up to a head, confirms what is final, and sends transfers that wait for a lane. */
async function readUpTo(
  deps: TransferDeps,
  chain: EvmChain,
  watched: WatchProgress,
  {
    head,
    handlers,
    attempt,
  }: { head: Head; handlers: BookingHandlers; attempt: (step: () => Promise<unknown>) => Promise<unknown> },
): Promise<void> {
  const readBefore = watched.cursor.number;
  noteHead(deps, chain.chain, head.number);
  const cursorBlock = head.number <= readBefore ? await checkCursorBlock(deps, chain, watched.cursor) : undefined;
  if (cursorBlock) watched.cursor = cursorBlock.cursor;
  let rereadFrom = readBefore;
  const confirm = () => confirmFinal(deps, chain, { cursor: watched.cursor, readBefore: rereadFrom, handlers });
  const receipts: GapReceipts = new Map();
  // An endpoint that is behind the cursor does not show the head.
  let newest = head.number === readBefore ? cursorBlock?.at : undefined;
  for (let reads = 0; watched.cursor.number < head.number && reads < MAX_READS; reads += 1) {
    const { unsolicited } = handlers;
    // The announced block serves one read: it may be of a fork that was dropped since, and would never continue the cursor.
    const next = reads === 0 ? head : { ...head, newest: undefined };
    const read = await readNextBlocks(deps, chain, { cursor: watched.cursor, head: next, receipts, unsolicited });
    watched.cursor = read.cursor;
    newest = read.at;
    // A single endpoint must read a range again before anything in it is confirmed.
    if (read.isRange) rereadFrom = watched.cursor.number;
    await Promise.all([attempt(confirm), attempt(() => relayWaiting(deps, chain, handlers))]);
  }
  if (newest && watched.cursor.number === head.number) {
    noteHeadTime(deps, chain, newest, { isNew: head.number > readBefore });
    if (isLiveHead(chain.network, newest, deps.now())) {
      watched.reachedHeadAt = head.askedAt;
      watched.readUpTo = watched.cursor.number;
    }
  }
  // The endpoint may have stopped following the chain. The next pass reads from one that follows it.
  if (watched.cursor.number >= head.number && watched.reachedHeadAt === undefined) await chain.compareHeights();
  if (watched.cursor.number === readBefore) await attempt(confirm);
}

/**
 * Creates the cursor of a chain that has none, some blocks before the head, so that a reorg finds a shared block. A restored
 * database may have lost the cursor: the watch then starts before the lost commits.
 */
export async function startWatch(deps: TransferDeps, chain: EvmChain): Promise<void> {
  if (await isWatched(deps.db, chain.chain)) return;
  const newest = Math.max(0, (await readFromReadable(chain, readHead)) - START_BEFORE_HEAD);
  const since = await findLostSince(deps.db);
  const read = (number: number) => readFromReadable(chain, (rpc) => readBlock(rpc, number));
  const readTime = async (number: number) => (await read(number)).at;
  const block = await read(since ? await findHeight(readTime, { newest, at: since }) : newest);
  if (since)
    deps.log.warn({ chain: chain.chain, block: block.number, since }, "a restored database has no cursor of the chain");
  await deps.db.transaction().execute(async (db) => {
    const { number, hash: blockId } = block;
    const assets = [...chain.tokens.keys()];
    const fresh = await ensureCursor(db, { chain: chain.chain, number, blockId, dueAt: deps.now(), assets });
    if (fresh) await storeBlocks(db, chain, { by: null, blocks: [block], keepFrom: 0 });
  });
}

/**
 * Checks that the cursor's block is still on the chain when there is no new block: a reorg need not make the chain longer.
 * Returns the block's time as `at` when it is.
 */
async function checkCursorBlock(
  deps: TransferDeps,
  chain: EvmChain,
  cursor: Cursor,
): Promise<{ cursor: Cursor; at: Date | undefined }> {
  const read = readFromReadable(chain, (rpc) => readBlock(rpc, cursor.number));
  const block = await read.catch((error: unknown) => {
    // An endpoint that does not have the block yet lags. A lagging endpoint is not evidence of a reorg.
    if (error instanceof ChainError && error.code === "rpc_behind") return undefined;
    throw error;
  });
  if (block === undefined || block.hash === cursor.blockId) return { cursor, at: block?.at };
  return { cursor: await followReorg(deps, chain, cursor), at: undefined };
}

/**
 * The newest block of an endpoint, and the time of the request: later blocks arrived after that time. `newest` is the block
 * itself and the endpoint that it was read from, when an announcement ended the wait. `isAnnounced`: the second endpoint has
 * announced the cursor's block, which waited for it.
 */
type Head = { number: number; askedAt: Date; newest: { block: Block; rpc: Rpc } | undefined; isAnnounced: boolean };

/**
 * Waits until the head is beyond the cursor, for a limited time, and returns the head. Asks every `pollMs`, and when an
 * endpoint announces a block, for the block itself, which is one call less. While the cursor's block waits for the second
 * endpoint, its announcement ends the wait. Asks at once unless `waitsFirst`: where blocks are announced, one that came
 * meanwhile ends the wait at once.
 */
async function waitForBlock(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; signal: AbortSignal; until: number; waitsFirst: boolean },
): Promise<Head> {
  const { cursor, signal, until, waitsFirst } = args;
  const isHeld = isWaitingForSecond(chain, cursor);
  const wait = () => {
    const ms = Math.min(chain.network.pollMs, Math.max(0, until - performance.now()));
    return chain.heads.wait({ height: isHeld ? cursor.number : cursor.number + 1, ms, signal });
  };
  let head: Omit<Head, "isAnnounced"> | undefined;
  // A held block is no evidence of the head: the head is asked for before the wait.
  for (let isAnnounced = waitsFirst && !isHeld && (await wait()); ; isAnnounced = await wait()) {
    if (head && isHeld && isAnnounced) return { ...head, isAnnounced };
    const askedAt = deps.now();
    const newest = isAnnounced ? await readNewest(chain) : undefined;
    head = { number: newest?.block.number ?? (await readFromReadable(chain, readHead)), askedAt, newest };
    const isNew = head.number > cursor.number;
    if (isNew) chain.heads.confirm();
    if (isNew || signal.aborted || performance.now() >= until) return { ...head, isAnnounced: false };
  }
}

/** Reads the newest block of an endpoint, and returns the endpoint with it. */
function readNewest(chain: EvmChain): Promise<{ block: Block; rpc: Rpc }> {
  return readFromReadable(chain, async (rpc) => ({ block: await readBlock(rpc, "latest"), rpc }));
}

/** Returns true while the cursor's block is deep enough and not confirmed, because the second endpoint is behind. */
function isWaitingForSecond({ network, endpoints }: EvmChain, cursor: Cursor): boolean {
  const { finality } = network;
  if (typeof finality !== "object" || endpoints.length < 2) return false;
  return cursor.finalNumber < cursor.number - finality.blocks + 1;
}

/** Measures our clock against the chain's. Where blocks are made on demand, only a new block is evidence. */
function noteHeadTime(deps: TransferDeps, chain: EvmChain, at: Date, { isNew }: { isNew: boolean }): void {
  if (!isNew && maxHeadAge(chain.network) === undefined) return;
  deps.metrics.clockSkew.set({ against: chain.chain }, (deps.now().getTime() - at.getTime()) / 1_000);
}

/** Reads the blocks after the cursor, or follows a reorg when they do not continue it. `at` is the time of the last block. */
async function readNextBlocks(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; head: Head; receipts: GapReceipts; unsolicited: BookUnsolicited },
): Promise<{ cursor: Cursor; at: Date | undefined; isRange: boolean }> {
  const { cursor, head, receipts, unsolicited } = args;
  // One endpoint reads the whole range, so that another one can make the second reading.
  const { by, value: reading } = await chain.readFromOneEndpoint((rpc) => {
    const reader = { ...chain, rpc };
    const to = Math.min(head.number, cursor.number + READ_AHEAD);
    const known = rpc === head.newest?.rpc ? head.newest.block : undefined;
    return readUnlessIncomplete(
      deps,
      chain,
      { rpc, cursor },
      async () =>
        (await readGap(deps, reader, { from: cursor, head: head.number, receipts })) ??
        (await readBlocks(deps, reader, { from: cursor, to, known })),
    );
  });
  const last = reading?.blocks.at(-1);
  if (!reading || !last) return { cursor: await followReorg(deps, chain, cursor), at: undefined, isRange: false };
  const isHead = last.number >= head.number && isLiveHead(chain.network, last.at, deps.now());
  const count = await transactByRows(deps.db, async (db, runRows) => {
    // Moves the cursor first: a watcher that cannot was overtaken by another process and must write nothing.
    // Payouts wait until the watcher has reached the head, and a transfer that this pass confirms can be paid out at once.
    const at = { number: last.number, blockId: last.hash };
    const reached = { reachedHeadAt: isHead ? head.askedAt : undefined, chainTime: last.at };
    const ok = await advanceCursor(db, cursor, { ...at, ...reached, leaseMs: WATCH_LEASE_MS });
    if (!ok) return undefined;
    await storeBlocks(db, chain, {
      by,
      blocks: reading.blocks,
      keepFrom: Math.min(last.number - STORED_BLOCKS, cursor.finalNumber),
    });
    return recordBlocks(db, deps, chain, { ...reading, unsolicited, runRows });
  });
  if (!count) throw new ChainError("rpc_behind", { detail: `another watcher has moved the cursor of ${chain.chain}` });
  count();
  if (reading.landed.length > 0) noteInclusion(chain);
  return { cursor: { ...cursor, number: last.number, blockId: last.hash }, at: last.at, isRange: reading.isRange };
}

/** Stores blocks, and from time to time deletes those that are below the final block and too deep for any reorg. */
async function storeBlocks(
  db: Db,
  chain: EvmChain,
  args: { by: string | null; blocks: readonly Block[]; keepFrom: number },
): Promise<void> {
  const rows = args.blocks.map(({ number, hash, parentHash, baseFee, at }) => ({
    chain: chain.chain,
    number,
    hash,
    parent_hash: parentHash,
    base_fee: baseFee,
    at,
    source_endpoint: args.by,
  }));
  await insertBlocks(db, rows);
  if (args.blocks.some(({ number }) => number % STORED_BLOCKS === 0))
    await deleteBlocks(db, { chain: chain.chain, below: args.keepFrom });
}
