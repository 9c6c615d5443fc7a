import { findReachedHead } from "../db/cursors.ts";
import type { TransferDeps } from "./deps.ts";

/** The treasury signs nothing while the watcher is further behind than this, milliseconds. */
const WATCH_FRESH_MS = 60_000;

/**
 * True when a chain's watcher stands at the head, and has come there since this process began: after a restore the rows
 * may know less than the chain, and what they do not know must be found before anything is paid out.
 */
export async function isCaughtUp(
  deps: Pick<TransferDeps, "db" | "now" | "startedAt">,
  chain: string,
): Promise<boolean> {
  const reached = await findReachedHead(deps.db, chain);
  if (!reached || reached <= deps.startedAt) return false;
  return deps.now().getTime() - reached.getTime() <= WATCH_FRESH_MS;
}
