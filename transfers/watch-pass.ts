import { getChain } from "../chains/open-chains.ts";
import { releaseCursor, renewCursor, takeCursor } from "../db/queries/chain-cursors.ts";
import type { BookingHandlers, WatchProgress } from "./booking-handlers.ts";
import { beginReread, endReread } from "./caught-up.ts";
import { compareWatchedAssets } from "./compare-assets.ts";
import { getTransferDriver } from "./find-transfer-driver.ts";
import type { TransferDeps } from "./transfer-deps.ts";
import { WATCH_LEASE_MS, WATCH_RENEW_MS } from "./watch-lease.ts";

/** The result of a pass. `mine` is false when another process holds the watch. `next` is the block to wait for. */
export type PassResult = { mine: false } | { mine: true; next: number };

/**
 * Makes one pass of a chain's watcher. One process at a time watches a chain: the holder of the cursor's lease. The pass
 * reads the blocks or statuses after the cursor, confirms what is final, ends transfers that can no longer happen, and
 * recovers stuck transactions. Its cost depends on the number of blocks, not on the number of transfers in flight.
 */
export async function watchChain(
  deps: TransferDeps,
  args: { chain: string; signal: AbortSignal; handlers: BookingHandlers },
): Promise<PassResult> {
  const chain = getChain(deps.chains, args.chain);
  const start = await takeCursor(deps.db, { chain: chain.chain, owner: deps.owner, leaseMs: WATCH_LEASE_MS });
  if (!start) return { mine: false };
  // One slow call to an endpoint can take longer than the lease.
  const renewing = setInterval(
    () => void renewCursor(deps.db, start, WATCH_LEASE_MS).catch(() => undefined),
    WATCH_RENEW_MS,
  );
  const driver = getTransferDriver(chain);
  const watched: WatchProgress = { cursor: start };
  let epoch: string | undefined;
  try {
    epoch = await beginReread(deps, chain.chain, () => driver.readLastHeight()).catch((error: unknown) => {
      deps.log.warn(
        { err: error, chain: chain.chain },
        "height up to which the chain must be read again is not known yet",
      );
      return undefined;
    });
    const hasUnread = await compareWatchedAssets(deps, chain, start, driver);
    await driver.runPass(deps, watched, { ...args, hasUnread });
  } finally {
    clearInterval(renewing);
    if (epoch !== undefined && watched.readUpTo !== undefined)
      await endReread(deps, { chain: chain.chain, epoch, upTo: watched.readUpTo }).catch(() => undefined);
    await releaseCursor(deps.db, start, watched);
  }
  return { mine: true, next: watched.cursor.number + 1 };
}
