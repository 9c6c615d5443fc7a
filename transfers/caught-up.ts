import { findHistoryProgress } from "../db/account-cursors.ts";
import { findReachedHead } from "../db/cursors.ts";
import type { TransferDeps } from "./deps.ts";

/** The treasury signs nothing while the watcher is further behind than this, milliseconds. */
const WATCH_FRESH_MS = 60_000;

/**
 * True when a chain's watcher stands at the head, and has come there since this process began: after a restore the rows
 * may know less than the chain, and what they do not know must be found before anything is paid out. Where a history is
 * read apart (Solana), it is listed to the head, and read whole up to a time after this process began.
 */
export async function isCaughtUp(
  deps: Pick<TransferDeps, "db" | "now" | "startedAt">,
  chain: string,
): Promise<boolean> {
  const isFresh = (at: Date | null | undefined) => {
    return at != null && at > deps.startedAt && deps.now().getTime() - at.getTime() <= WATCH_FRESH_MS;
  };
  if (!isFresh(await findReachedHead(deps.db, chain))) return false;
  const history = await findHistoryProgress(deps.db, chain);
  if (!history) return true;
  // What strangers have sent since this process began may wait to be read for as long as they like.
  return isFresh(history.listedAt) && history.readAt !== null && history.readAt > deps.startedAt;
}
