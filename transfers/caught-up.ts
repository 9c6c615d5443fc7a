import type { Chain } from "../chains/chain.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { findUnreadEpoch, recordChainRead, recordChainUnread } from "../db/epoch.ts";
import { findHistoryProgress, type HistoryProgress } from "../db/queries/account-cursors.ts";
import { findReachedHead } from "../db/queries/chain-cursors.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/** The treasury signs nothing while the watcher is further behind the head than this, milliseconds. */
const WATCH_FRESH_MS = 60_000;

type Deps = Pick<TransferDeps, "db" | "now" | "startedAt" | "epoch" | "chains">;

/**
 * Returns the epoch in which the treasury may sign on a chain now, for `epoch.pass`, or undefined when it must not sign.
 * It may sign when the chain's watcher has reached the head since this process started, and has read the chain again since
 * the database last lost commits: the database may lack payments that the chain has, and the watcher must find them before
 * the treasury pays out. Where the history is read separately (Solana), it must also be listed up to the head, and read
 * completely up to a time after this process started.
 */
export async function findTreasuryEpoch(deps: Deps, chain: string): Promise<string | undefined> {
  const isFresh = (at: Date | null | undefined) =>
    at != null && at > deps.startedAt && Math.abs(deps.now().getTime() - at.getTime()) <= WATCH_FRESH_MS;
  const epoch = await findReadEpoch(deps, chain);
  if (epoch === undefined || !isFresh(await findReachedHead(deps.db, chain))) return undefined;
  const history = await findHistory(deps, deps.chains.get(chain));
  if (!history) return epoch;
  // Transactions that third parties sent after this process started do not delay payouts.
  const isRead = isFresh(history.listedAt) && history.readAt !== null && history.readAt > deps.startedAt;
  return isRead ? epoch : undefined;
}

/** Returns how far the histories of the treasury's token accounts are read, or undefined where no history is read. */
export async function findHistory(
  { db }: Pick<TransferDeps, "db">,
  chain: Chain | undefined,
): Promise<HistoryProgress | undefined> {
  if (!chain) return undefined;
  const accounts = getChainDriver(chain.chain).listHistoryAccounts(chain);
  if (accounts.length === 0) return undefined;
  return findHistoryProgress(db, { chain: chain.chain, accounts });
}

/**
 * Returns the epoch in which a relayer may sign buyers' transactions on a chain now, or undefined when it must not. A
 * restored database may have lost a transaction that is in flight, and a buyer who signs a second one pays twice. The
 * watcher need not have reached the head.
 */
export async function findReadEpoch(deps: Pick<Deps, "db" | "epoch">, chain: string): Promise<string | undefined> {
  const epoch = await deps.epoch.check();
  return (await findUnreadEpoch(deps.db, chain)) ? undefined : epoch;
}

/**
 * Starts a pass of a chain's watcher. When the database has lost commits, stores the height up to which the chain
 * must be read again: every transaction that was signed before is either below that height or rejected by the chain, also when it
 * is sent later. Returns the epoch of that read, or undefined when none is needed.
 * @param readLastHeight reads that height
 */
export async function beginReread(
  { db }: Pick<TransferDeps, "db">,
  chain: string,
  readLastHeight: () => Promise<number>,
): Promise<string | undefined> {
  const unread = await findUnreadEpoch(db, chain);
  if (unread && unread.height === undefined)
    await recordChainUnread(db, { chain, epoch: unread.epoch, height: await readLastHeight() });
  return unread?.epoch;
}

/** Ends a pass that has read the whole chain up to a height. Marks the chain as read again if the height suffices. */
export async function endReread(
  { db }: Pick<TransferDeps, "db">,
  args: { chain: string; epoch: string; upTo: number },
): Promise<void> {
  await recordChainRead(db, args);
}
