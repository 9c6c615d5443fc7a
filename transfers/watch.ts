import { getChain } from "../chains/open.ts";
import { releaseCursor, renewCursor, takeCursor } from "../db/cursors.ts";
import { listWaiting } from "../db/transfers.ts";
import type { Books, Watched } from "./books.ts";
import { beginReading, endReading } from "./caught-up.ts";
import type { TransferDeps } from "./deps.ts";
import { driverOf } from "./driver.ts";
import { WATCH_LEASE_MS, WATCH_RENEW_MS } from "./lease.ts";
import { compareAssets } from "./unread-assets.ts";

/**
 * The result of a pass. `mine` is false when another process holds the watch. `next` is the block to wait for. `moved` is
 * true when blocks were read. `waiting` has transfers that wait for a lane: one of a plain key and one of a contract wallet.
 */
export type Turn =
  | { mine: false }
  | { mine: true; next: number; moved: boolean; waiting: readonly { id: string; smart_wallet: boolean }[] };

/**
 * Makes one pass of a chain's watcher. One process at a time watches a chain: the holder of the cursor's lease. The pass
 * reads the blocks or statuses after the cursor, confirms what is final, ends transfers that can no longer happen, and
 * recovers stuck transactions. Its cost depends on the number of blocks, not on the number of transfers in flight.
 */
export async function watchChain(
  deps: TransferDeps,
  args: { chain: string; signal: AbortSignal; books: Books },
): Promise<Turn> {
  const chain = getChain(deps.chains, args.chain);
  const start = await takeCursor(deps.db, { chain: chain.chain, owner: deps.owner, leaseMs: WATCH_LEASE_MS });
  if (!start) return { mine: false };
  // One slow call to an endpoint can take longer than the lease.
  const renewing = setInterval(
    () => void renewCursor(deps.db, start, WATCH_LEASE_MS).catch(() => undefined),
    WATCH_RENEW_MS,
  );
  const driver = driverOf(chain);
  const watched: Watched = { cursor: start };
  let epoch: string | undefined;
  try {
    epoch = await beginReading(deps, chain.chain, () => driver.readNewest()).catch((error: unknown) => {
      deps.log.warn(
        { err: error, chain: chain.chain },
        "height up to which the chain must be read again is not known yet",
      );
      return undefined;
    });
    const hasUnread = await compareAssets(deps, chain, start, driver);
    await driver.runPass(deps, watched, { ...args, hasUnread });
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
