import type { EvmChain } from "../chains/evm/open.ts";
import { isAway } from "../chains/evm/rpc.ts";
import { readNextNonce } from "../chains/evm/send.ts";
import { addressOfLane, findNextNonce, lowerNextNonce, skipUsedNonces } from "../db/lanes.ts";
import { findHighestLanded, markReplaced, type TransactionKey, type TransactionRow } from "../db/transactions.ts";
import { listCarried, uncarryTransfers } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";

/** Endpoints asked for a nonce. */
const WITNESSES = 2;
/** A lane that is ahead of the chain is led back after so many block times, and this at least, milliseconds. */
const AHEAD_PATIENCE_BLOCKS = 20;
const AHEAD_PATIENCE_MS = 2_000;

/**
 * After an endpoint has said that a nonce of ours is too low: the lane skips what others have used of its key. An
 * endpoint may lie, and every nonce that is skipped and free keeps all later ones out of blocks: so as far as two endpoints
 * say so, and on the word of a single one no further than the lane's window.
 */
export async function skipUsed(deps: TransferDeps, chain: EvmChain, key: TransactionKey): Promise<void> {
  const counts = await readCounts(chain, addressOfLane(key.lane_id));
  const [count] = counts;
  if (count === undefined) return;
  const bound = counts.length >= WITNESSES ? Math.min(...counts) : key.nonce + chain.network.laneWindow;
  await skipUsedNonces(deps.db, { laneId: key.lane_id, nextNonce: Math.min(count, bound) });
}

/**
 * Leads a lane back whose lowest transaction stands above the nonce that the chain expects, with none of ours between: no
 * block will ever take it. Its transfers go again; should the old bytes land one day after all, the chain refuses the
 * second use of each authorization. Only on the word of two endpoints, where there are two, and never below what our own
 * transactions have used, which an endpoint that lags may say.
 * @param waiting the lane's transactions that are in no block, the lowest nonce first
 * @returns true when the lane was led back
 */
export async function leadBack(
  deps: TransferDeps,
  chain: EvmChain,
  waiting: readonly TransactionRow[],
): Promise<boolean> {
  const [lowest] = waiting;
  if (!lowest || !isOld(deps, chain, lowest)) return false;
  const { lane_id: laneId } = lowest;
  const counts = await readCounts(chain, addressOfLane(laneId));
  if (counts.length < Math.min(WITNESSES, chain.endpoints.length)) return false;
  const to = Math.max(...counts);
  const landed = await findHighestLanded(deps.db, laneId);
  const from = await findNextNonce(deps.db, laneId);
  if (from === undefined || to >= lowest.nonce || Math.min(...counts) <= (landed ?? -1)) return false;
  const led = await moveBack(deps, waiting, { laneId, from, to });
  if (!led) return false;
  deps.log.error(
    { chain: chain.chain, lane: laneId, from, to, transfers: led },
    "a lane was ahead of the chain and is led back; an endpoint may have told a wrong nonce",
  );
  return true;
}

/** Undoes a transaction whose lane has moved since it was looked at. */
class Moved extends Error {
  override readonly name = "Moved";
}

/** Transactions, their transfers and the lane's nonce at once; gives the transfers, or undefined when the lane is in use. */
async function moveBack(
  deps: TransferDeps,
  waiting: readonly TransactionRow[],
  lane: { laneId: string; from: number; to: number },
): Promise<string[] | undefined> {
  try {
    return await deps.db.transaction().execute(async (db) => {
      const stranded = await listCarried(db, waiting);
      for (const row of waiting) await markReplaced(db, row);
      if (!(await lowerNextNonce(db, lane))) throw new Moved();
      const reason = "its nonce was above what the chain expects";
      return uncarryTransfers(db, { ids: stranded.map(({ id }) => id), reason, now: deps.now() });
    });
  } catch (error) {
    if (error instanceof Moved) return undefined;
    throw error;
  }
}

function isOld(deps: TransferDeps, chain: EvmChain, row: TransactionRow): boolean {
  const patience = AHEAD_PATIENCE_BLOCKS * chain.network.blockMs + AHEAD_PATIENCE_MS;
  return deps.now().getTime() - row.created_at.getTime() >= patience;
}

/** What the first endpoints that answer say is the next nonce of an account, each by itself. */
async function readCounts(chain: EvmChain, address: `0x${string}`): Promise<number[]> {
  const counts: number[] = [];
  for (const { rpc } of chain.endpoints) {
    if (counts.length === WITNESSES) break;
    const count = await readNextNonce(rpc, address).catch((error: unknown) => {
      if (isAway(error)) return undefined;
      throw error;
    });
    if (count !== undefined) counts.push(count);
  }
  return counts;
}
