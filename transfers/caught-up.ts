import type { Chain } from "../chains/open.ts";
import { findHistoryProgress, type HistoryProgress } from "../db/account-cursors.ts";
import { findReachedHead } from "../db/cursors.ts";
import { findUnread, noteRead, noteUnread } from "../db/epoch.ts";
import type { TransferDeps } from "./deps.ts";

/** The treasury signs nothing while the watcher is further behind than this, milliseconds. */
const WATCH_FRESH_MS = 60_000;

type Deps = Pick<TransferDeps, "db" | "now" | "startedAt" | "epoch" | "chains">;

/**
 * True when a chain's watcher stands at the head, has come there since this process began, and has read everything again
 * since the database last stepped back in time: the rows may know less than the chain, and what they do not know must be
 * found before anything is paid out. Where a history is read apart (Solana), it is listed to the head, and read whole up
 * to a time after this process began.
 */
export async function isCaughtUp(deps: Deps, chain: string): Promise<boolean> {
  return (await findTreasuryEpoch(deps, chain)) !== undefined;
}

/** Returns the epoch in which the treasury may sign on a chain now, for `epoch.pass`; undefined when it must not. */
export async function findTreasuryEpoch(deps: Deps, chain: string): Promise<string | undefined> {
  const isFresh = (at: Date | null | undefined) =>
    at != null && at > deps.startedAt && Math.abs(deps.now().getTime() - at.getTime()) <= WATCH_FRESH_MS;
  const epoch = await findReadEpoch(deps, chain);
  if (epoch === undefined || !isFresh(await findReachedHead(deps.db, chain))) return undefined;
  const history = await findHistory(deps, deps.chains.get(chain));
  if (!history) return epoch;
  // What strangers have sent since this process began may wait to be read for as long as they like.
  const isRead = isFresh(history.listedAt) && history.readAt !== null && history.readAt > deps.startedAt;
  return isRead ? epoch : undefined;
}

/** Returns how far the histories of the treasury's token accounts are known; undefined where no history is read. */
export async function findHistory(
  { db }: Pick<TransferDeps, "db">,
  chain: Chain | undefined,
): Promise<HistoryProgress | undefined> {
  if (chain?.family !== "solana") return undefined;
  const accounts = [...chain.tokens.values()].map(({ treasuryAccount }) => treasuryAccount);
  return findHistoryProgress(db, { chain: chain.chain, accounts });
}

/**
 * Returns the epoch in which buyers' transactions may be signed on a chain now; undefined when they must not. A restored
 * database may have forgotten one that is under way, and a buyer who signs a second one pays twice. The watcher need not
 * stand at the head for it.
 */
export async function findReadEpoch(deps: Pick<Deps, "db" | "epoch">, chain: string): Promise<string | undefined> {
  const epoch = await deps.epoch.check();
  return (await findUnread(deps.db, chain)) ? undefined : epoch;
}

/**
 * At the beginning of a turn of a chain's watcher: notes up to which height the chain has to be read again, when the
 * database has stepped back in time. What had been sent by then is in the chain by now, or is refused by it. Returns the
 * epoch of that reading; undefined when none is needed.
 * @param readHead asks for the newest height there is
 */
export async function beginReading(
  { db }: Pick<TransferDeps, "db">,
  chain: string,
  readHead: () => Promise<number>,
): Promise<string | undefined> {
  const unread = await findUnread(db, chain);
  if (unread && unread.height === undefined)
    await noteUnread(db, { chain, epoch: unread.epoch, height: await readHead() });
  return unread?.epoch;
}

/** At the end of a turn that has read the whole chain up to a height: notes it, if that is far enough. */
export async function endReading(
  { db }: Pick<TransferDeps, "db">,
  args: { chain: string; epoch: string; upTo: number },
): Promise<void> {
  await noteRead(db, args);
}
