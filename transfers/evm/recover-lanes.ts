import { isUnreadable } from "../../chains/errors.ts";
import {
  type BroadcastResult,
  type BroadcastTo,
  broadcastBytes,
  isRefusal,
  readNextNonce,
} from "../../chains/evm/evm-broadcast.ts";
import { isUnavailable } from "../../chains/evm/evm-rpc.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readFromReadable } from "../../chains/evm/readable-answers.ts";
import { isEndpointError } from "../../chains/evm/rpc-errors.ts";
import { type Cursor, findBaseFee } from "../../db/queries/chain-cursors.ts";
import { addressOfLane } from "../../db/queries/lanes.ts";
import { type EvmTransactionRow, listByNonce, listUnincluded, markReplaced } from "../../db/queries/transactions.ts";
import { listAssigned, unassignTransfers } from "../../db/queries/transfers.ts";
import { attemptAll } from "../attempt-all.ts";
import type { BookUnsolicited } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { isPricedOut } from "./gas-fees.ts";
import { resetLaneNonce } from "./lane-nonce.ts";
import { recordMissedReceipts } from "./missed-receipts.ts";
import { isNoncePassed } from "./passed-nonces.ts";
import { readReceipts } from "./read-gap.ts";
import { feesOf, replaceTransaction } from "./replace-transaction.ts";
import { storeBroadcastResult } from "./store-broadcast-result.ts";

/**
 * A transaction that no endpoint has accepted is broadcast again after this, milliseconds. Its process died before the
 * broadcast, or the response was lost, or the endpoint rejected it.
 */
const UNANSWERED_WAIT_MS = 1_500;
/** An accepted transaction is broadcast again after this many block times, and at least this many milliseconds. */
const ACCEPTED_WAIT_BLOCKS = 3;
const ACCEPTED_WAIT_MS = 2_000;
/** A transaction below the current base fee is replaced after this many block times: it cannot be included. */
const PRICED_OUT_WAIT_BLOCKS = 1;
/** A transaction whose price no endpoint accepts is replaced after this many block times: a pool may be full for a moment. */
const REFUSED_WAIT_BLOCKS = 3;
/** An accepted transaction that is in no block after this many block times has too low a tip. */
const TIP_WAIT_BLOCKS = 20;
/** Transactions that one pass checks, and that it broadcasts again for each lane, at most. */
const MAX_CHECKED = 500;
const MAX_BROADCAST = 20;

/**
 * Recovers transactions that are in no block. Broadcasts the same bytes again when the process died, a node lost them or a
 * reorg dropped them. Replaces a transaction with a higher fee when it is below the base fee, or when it has the lane's
 * lowest nonce and its tip is too low: it stays pending for long, or every endpoint refuses it.
 */
export async function recoverLanes(
  deps: TransferDeps,
  chain: EvmChain,
  reading: { cursor: Cursor; unsolicited: BookUnsolicited },
): Promise<void> {
  const rows = await listUnincluded(deps.db, { chain: chain.chain, limit: MAX_CHECKED });
  const baseFee = rows.length === 0 ? undefined : await findBaseFee(deps.db, chain.chain);
  if (baseFee === undefined) return;
  const lanes = Map.groupBy(rows, (row) => row.lane_id);
  await attemptAll(
    [...lanes.values()].map((waiting) => () => recoverLane(deps, chain, { waiting, baseFee, ...reading })),
  );
}

/** @param waiting transactions of one lane that are in no block, the lowest nonce first */
async function recoverLane(
  deps: TransferDeps,
  chain: EvmChain,
  {
    waiting,
    baseFee,
    ...reading
  }: { waiting: readonly EvmTransactionRow[]; baseFee: bigint; cursor: Cursor; unsolicited: BookUnsolicited },
): Promise<void> {
  const [lowest] = waiting;
  const due = waiting.filter((row) => isDue(deps, chain, row, baseFee)).slice(0, MAX_BROADCAST);
  if (!lowest || due.length === 0) return;
  const used = await readFromReadable(chain, (rpc) => readNextNonce(rpc, addressOfLane(lowest.lane_id)));
  await endUsedNonces(deps, chain, { passed: due.filter((row) => row.nonce < used), ...reading });
  if (used < lowest.nonce && (await resetLaneNonce(deps, chain, waiting))) return;
  const at = { baseFee, cursor: reading.cursor };
  for (const row of due) {
    if (row.nonce === used) await recoverLowest(deps, chain, row, at);
    else if (row.nonce > used) await recoverLater(deps, chain, row, at);
  }
}

/** What a pass of the watcher knows of the chain. */
type At = { baseFee: bigint; cursor: Cursor };

/**
 * Broadcasts the lane's lowest nonce, with a higher fee when it is stuck or refused for its price. When it was accepted and is
 * still in no block, every endpoint gets it: one may accept transactions and pass none on.
 */
async function recoverLowest(deps: TransferDeps, chain: EvmChain, row: EvmTransactionRow, at: At): Promise<void> {
  const to = row.state === "accepted" ? "all" : "first_to_accept";
  const isStuck = isBelowBaseFee(chain, row, at.baseFee) || isTipTooLow(deps, chain, row, at.cursor);
  const replacement = isStuck ? await replaceTransaction(deps, chain, row, at) : undefined;
  let outcome = await broadcastStored(deps, chain, replacement ?? row, to);
  if (!isStuck && outcome === "underpriced" && isRefusedForLong(deps, chain, row, at.cursor)) {
    const raised = await replaceTransaction(deps, chain, row, at);
    if (raised) outcome = await broadcastStored(deps, chain, raised, to);
  }
  if (isRefusal(outcome)) await broadcastFormer(deps, chain, row, at.baseFee);
}

/** Broadcasts a later nonce. No block includes it before the lowest one, so one endpoint is enough for it. */
async function recoverLater(deps: TransferDeps, chain: EvmChain, row: EvmTransactionRow, at: At): Promise<void> {
  const isStuck = isBelowBaseFee(chain, row, at.baseFee);
  const replacement = isStuck ? await replaceTransaction(deps, chain, row, at) : undefined;
  await broadcastStored(deps, chain, replacement ?? row, "one");
}

/**
 * Broadcasts the newest of a nonce's former transactions that can pay the base fee, after the endpoints have refused its
 * replacement. A pool may have dropped it, and takes it again, because it costs less. Those that are marked as replaced may
 * hold other transfers, and stay out.
 */
async function broadcastFormer(
  deps: TransferDeps,
  chain: EvmChain,
  row: EvmTransactionRow,
  baseFee: bigint,
): Promise<void> {
  if (row.replacement === 0) return;
  const former = (await listByNonce(deps.db, row)).findLast(
    (twin) => twin.replacement < row.replacement && twin.state !== "replaced" && !isBelowBaseFee(chain, twin, baseFee),
  );
  if (former) await broadcastStored(deps, chain, former, "first_to_accept");
}

async function broadcastStored(
  deps: TransferDeps,
  chain: EvmChain,
  row: EvmTransactionRow,
  to: BroadcastTo,
): Promise<BroadcastResult["outcome"]> {
  const result = await broadcastBytes(chain, `0x${row.bytes.toString("hex")}`, to);
  await storeBroadcastResult(deps, chain, row, result);
  return result.outcome;
}

function isDue(deps: TransferDeps, chain: EvmChain, row: EvmTransactionRow, baseFee: bigint): boolean {
  const age = ageMs(deps, row.broadcast_at ?? row.created_at);
  if (row.state !== "accepted") return age >= UNANSWERED_WAIT_MS;
  if (isBelowBaseFee(chain, row, baseFee)) return age >= PRICED_OUT_WAIT_BLOCKS * chain.network.blockMs;
  return age >= Math.max(ACCEPTED_WAIT_MS, ACCEPTED_WAIT_BLOCKS * chain.network.blockMs);
}

/**
 * Ends the transactions of nonces that the account has used. Those whose nonce a final transaction of ours has used were
 * stored too late to be marked as replaced with the others, and are marked now. One that a block includes, and that the
 * reading of the block did not contain, is recorded. When the account's nonce is past one at the height that the watcher has
 * read and confirmed, and no endpoint has a receipt of our hashes, a foreign transaction has used it: its transfers are
 * unassigned. Before that, our bytes may still be included, or be in a block that is final and not read yet: an endpoint that
 * lacks a receipt may lag.
 */
async function endUsedNonces(
  deps: TransferDeps,
  chain: EvmChain,
  { passed, ...reading }: { passed: readonly EvmTransactionRow[]; cursor: Cursor; unsolicited: BookUnsolicited },
): Promise<void> {
  for (const row of passed) {
    const address = addressOfLane(row.lane_id);
    const twins = await listByNonce(deps.db, row);
    if (twins.some(({ state }) => state === "final")) {
      await markReplaced(deps.db, row);
      continue;
    }
    const found = await findReceipts(chain, twins);
    if (found.length > 0) {
      await recordMissedReceipts(deps, chain, { ...reading, found });
      continue;
    }
    if (!(await isNoncePassed(deps, chain, { address, nonce: row.nonce, cursor: reading.cursor }))) continue;
    const stranded = await listAssigned(deps.db, [row]);
    deps.log.error(
      { chain: chain.chain, lane: address, nonce: row.nonce },
      "lane's nonce was used by a foreign transaction; the key must serve this deployment alone",
    );
    await deps.db.transaction().execute(async (db) => {
      await markReplaced(db, row);
      await unassignTransfers(db, {
        ids: stranded.map(({ id }) => id),
        reason: "its nonce was used by a foreign transaction",
        now: deps.now(),
      });
    });
  }
}

/**
 * Returns those of our transactions that are in blocks, by the first endpoint that has their receipts. Throws the error of receipts that
 * cannot be read when no endpoint has others.
 */
async function findReceipts(
  chain: EvmChain,
  rows: readonly EvmTransactionRow[],
): Promise<Awaited<ReturnType<typeof readReceipts>>> {
  let unreadable: unknown;
  for (const { rpc } of [chain, ...chain.endpoints]) {
    const found = await readReceipts({ rpc }, rows).catch((error: unknown) => {
      if (isUnreadable(error)) unreadable = error;
      // An endpoint that fails whatever it is asked may be the only one that has a receipt.
      if (isUnreadable(error) || (isUnavailable(error) && !isEndpointError(error))) return [];
      throw error;
    });
    if (found.length > 0) return found;
  }
  if (unreadable !== undefined) throw unreadable;
  return [];
}

/** Returns true for a transaction that cannot pay the current base fee. Any other one is broadcast again unchanged. */
function isBelowBaseFee(chain: EvmChain, row: EvmTransactionRow, baseFee: bigint): boolean {
  return isPricedOut(feesOf(row), baseFee, chain.network.feeModel);
}

/**
 * Returns true for a transaction that was accepted long ago and is still pending, so its tip is too low. (A reorg clears the
 * time of the last broadcast: then the same bytes are broadcast first.)
 */
function isTipTooLow(deps: TransferDeps, chain: EvmChain, row: EvmTransactionRow, cursor: Cursor): boolean {
  if (row.state !== "accepted" || row.broadcast_at === null || !haveBlocksPassed(chain, row, cursor, TIP_WAIT_BLOCKS))
    return false;
  return ageMs(deps, row.created_at) >= TIP_WAIT_BLOCKS * chain.network.blockMs + ACCEPTED_WAIT_MS;
}

/** Returns true for a transaction that was signed some block times ago. Each of its replacements waits as long. */
function isRefusedForLong(deps: TransferDeps, chain: EvmChain, row: EvmTransactionRow, cursor: Cursor): boolean {
  if (!haveBlocksPassed(chain, row, cursor, REFUSED_WAIT_BLOCKS)) return false;
  return ageMs(deps, row.created_at) >= Math.max(ACCEPTED_WAIT_MS, REFUSED_WAIT_BLOCKS * chain.network.blockMs);
}

/**
 * Returns true when so many blocks were read since a transaction was signed. A chain that makes no blocks for a while includes
 * no transaction, whatever it offers. One that makes them on demand may have none to make before a price is raised.
 */
function haveBlocksPassed(chain: EvmChain, row: EvmTransactionRow, cursor: Cursor, blocks: number): boolean {
  if (chain.network.maxHeadAgeMs === null || row.signed_height === null) return true;
  return cursor.number - row.signed_height >= blocks;
}

function ageMs(deps: TransferDeps, since: Date): number {
  return deps.now().getTime() - since.getTime();
}
