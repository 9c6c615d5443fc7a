import { isUnreadable } from "../../chains/errors.ts";
import { readNextNonce } from "../../chains/evm/evm-broadcast.ts";
import { isUnavailable } from "../../chains/evm/evm-rpc.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { commitIfOk } from "../../db/in-transaction.ts";
import { addressOfLane, findNextNonce, lowerNextNonce, skipUsedNonces } from "../../db/queries/lanes.ts";
import {
  type EvmTransactionRow,
  findHighestLanded,
  markReplaced,
  type TransactionKey,
} from "../../db/queries/transactions.ts";
import { listAssigned, unassignTransfers } from "../../db/queries/transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** Endpoints that are asked for a nonce. */
const ASKED_ENDPOINTS = 2;
/** The nonce of a lane that is ahead of the chain is reset after this many block times plus this many milliseconds. */
const AHEAD_WAIT_BLOCKS = 20;
const AHEAD_WAIT_MS = 2_000;

/**
 * Skips the nonces of a lane that another program has used with its key. Called after an endpoint has reported a nonce as
 * too low. An endpoint may be wrong, and a skipped nonce that is free keeps all later transactions out of blocks. So the
 * lane skips up to the lower of two endpoints' counts, and no further than the lane's window when only one answers.
 */
export async function skipForeignNonces(deps: TransferDeps, chain: EvmChain, key: TransactionKey): Promise<void> {
  const counts = await readCounts(chain, addressOfLane(key.lane_id));
  const [count] = counts;
  if (count === undefined) return;
  const bound = counts.length >= ASKED_ENDPOINTS ? Math.min(...counts) : key.nonce + chain.network.laneWindow;
  await skipUsedNonces(deps.db, { laneId: key.lane_id, nextNonce: Math.min(count, bound) });
}

/**
 * Resets the nonce of a lane whose lowest transaction is above the nonce that the chain expects, with none of ours between:
 * no block can include it. Its transfers become ready again. Should the old bytes be included later, the chain rejects the
 * second use of each authorization. Requires the same result from two endpoints where there are two, and never goes below
 * the nonces of our included transactions, which a lagging endpoint can report.
 * @param waiting the lane's transactions that are in no block, the lowest nonce first
 * @returns true when the nonce was reset
 */
export async function resetLaneNonce(
  deps: TransferDeps,
  chain: EvmChain,
  waiting: readonly EvmTransactionRow[],
): Promise<boolean> {
  const [lowest] = waiting;
  if (!lowest || !isOld(deps, chain, lowest)) return false;
  const { lane_id: laneId } = lowest;
  const counts = await readCounts(chain, addressOfLane(laneId));
  if (counts.length < Math.min(ASKED_ENDPOINTS, chain.endpoints.length)) return false;
  const to = Math.max(...counts);
  const landed = await findHighestLanded(deps.db, laneId);
  const from = await findNextNonce(deps.db, laneId);
  if (from === undefined || to >= lowest.nonce || Math.min(...counts) <= (landed ?? -1)) return false;
  const lowered = await lowerNonce(deps, waiting, { laneId, from, to });
  if (!lowered.ok) return false;
  deps.log.error(
    { chain: chain.chain, lane: laneId, from, to, transfers: lowered.transfers },
    "lane was ahead of the chain and its nonce is reset; an endpoint may have reported a wrong nonce",
  );
  return true;
}

/**
 * Marks the transactions as replaced, unassigns their transfers and lowers the lane's nonce, in one database transaction.
 * Returns the ids of the transfers. The result is not `ok` when the lane has moved since it was read.
 */
async function lowerNonce(
  deps: TransferDeps,
  waiting: readonly EvmTransactionRow[],
  lane: { laneId: string; from: number; to: number },
): Promise<{ ok: true; transfers: string[] } | { ok: false }> {
  return commitIfOk(deps.db, async (db) => {
    const stranded = await listAssigned(db, waiting);
    for (const row of waiting) await markReplaced(db, row);
    if (!(await lowerNextNonce(db, lane))) return { ok: false };
    const reason = "its nonce was above what the chain expects";
    const ids = stranded.map(({ id }) => id);
    return { ok: true, transfers: await unassignTransfers(db, { ids, reason, now: deps.now() }) };
  });
}

function isOld(deps: TransferDeps, chain: EvmChain, row: EvmTransactionRow): boolean {
  const waitMs = AHEAD_WAIT_BLOCKS * chain.network.blockMs + AHEAD_WAIT_MS;
  return deps.now().getTime() - row.created_at.getTime() >= waitMs;
}

/** Returns the next nonce of an account, as reported by each of the first endpoints that answer. */
async function readCounts(chain: EvmChain, address: `0x${string}`): Promise<number[]> {
  const counts: number[] = [];
  for (const { rpc } of chain.endpoints) {
    if (counts.length === ASKED_ENDPOINTS) break;
    const count = await readNextNonce(rpc, address).catch((error: unknown) => {
      if (isUnavailable(error) || isUnreadable(error)) return undefined;
      throw error;
    });
    if (count !== undefined) counts.push(count);
  }
  return counts;
}
