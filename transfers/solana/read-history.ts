import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ChainError } from "../../chains/errors.ts";
import { getSolanaChain } from "../../chains/open-chains.ts";
import {
  type AccountCursor,
  releaseAccount,
  takeAccount,
  updateReadProgress,
} from "../../db/queries/account-cursors.ts";
import { type HistoryEntry, listDueEntries } from "../../db/queries/history-entries.ts";
import { MAX_READ_ATTEMPTS } from "../history-attempts.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { readFinalState } from "./final-states.ts";
import { listHistory } from "./list-history.ts";
import { needsComparison, type Reading, readEntry } from "./read-entry.ts";
import { type HistoryAccount, type HistoryHandlers, postponeEntry, recordEntries } from "./record-entries.ts";
import { relistHistory } from "./relist-history.ts";
import { compareWaiting, storeWaiting } from "./waiting-entries.ts";

/** Another reader can take over an account when its reader has not renewed the lease for this long, milliseconds. */
const LEASE_MS = 30_000;
/** Time limit of one run, milliseconds. Another job continues then. */
const RUN_MS = 5_000;
/** Slots by which an endpoint may be behind the one that has reported its final slot, and still makes a listing complete. */
const BEHIND_SLOTS = 10;
/** Transactions that are recorded together, and concurrent calls. */
const PART = 64;
const CONCURRENCY = 16;

/** `isReachable` is false when no endpoint answered the listing either: that entries cannot be read then says nothing about them. */
type ListedAccount = HistoryAccount & { isReachable: boolean };

const isUnreachable = (error: unknown): error is ChainError =>
  error instanceof ChainError && error.code === "rpc_unreachable";

/**
 * Reads the final history of the treasury's token accounts, and records movements of transactions that are not ours. Lists
 * and stores new transactions first, then reads them in parts and stores each part separately. A crash in between neither
 * loses nor duplicates a movement, and third parties that send dust delay only each other. A movement that names a pending
 * payment opens its attempt; the rest becomes exceptions. One caller at a time reads an account. Returns `more` when
 * something is left that can be read now. Throws ChainError after it has tried everything else.
 */
export async function readHistory(
  deps: TransferDeps,
  chainId: string,
  handlers: HistoryHandlers,
): Promise<"idle" | "more"> {
  const chain = getSolanaChain(deps.chains, chainId);
  const ends: boolean[] = [];
  const failures: unknown[] = [];
  for (const token of chain.tokens.values()) {
    const held = { chain: chain.chain, account: token.treasuryAccount, owner: randomUUID() };
    await readAccount(deps, { chain, token, held, handlers }).then(
      (more) => ends.push(more),
      (error: unknown) => failures.push(error),
    );
  }
  if (failures.length > 0) throw failures[0];
  return ends.includes(true) ? "more" : "idle";
}

async function readAccount(deps: TransferDeps, account: HistoryAccount): Promise<boolean> {
  const { chain, held } = account;
  const take = () => takeAccount(deps.db, { ...held, now: deps.now(), until: leaseEnd(deps) });
  const cursor = await take();
  if (!cursor) return false;
  try {
    const list = async () => {
      const final = Math.max(0, (await readFinalState(deps, chain)).slot - BEHIND_SLOTS);
      const { isComplete, isAgreed } = await listHistory(deps, chain, { cursor, held, final });
      return isComplete && (!isAgreed || (await relistHistory(deps, chain, { cursor, held, final })));
    };
    // Entries that are already listed are read even when the listing fails.
    const listed = await list().catch((error: unknown) => ({ error }));
    const isReachable = typeof listed === "boolean" || !isUnreachable(listed.error);
    const isRead = await readEntries(deps, { ...account, isReachable }, take);
    if (typeof listed === "object") throw listed.error;
    return !listed || !isRead;
  } finally {
    await updateReadProgress(deps.db, held, { unreadable: MAX_READ_ATTEMPTS });
    await releaseAccount(deps.db, held);
  }
}

const leaseEnd = (deps: TransferDeps) => new Date(deps.now().getTime() + LEASE_MS);

type Renew = () => Promise<AccountCursor | undefined>;

/**
 * Reads parts until nothing is due or the time limit is reached, no faster than the network's setting allows. Then compares what one
 * endpoint must not decide, which counts as an attempt, unless no endpoint answers.
 */
async function readEntries(deps: TransferDeps, account: ListedAccount, renew: Renew): Promise<boolean> {
  const isRead = await readParts(deps, account, renew);
  const cursor = await renew();
  if (cursor && account.isReachable) await compareWaiting(deps, account, cursor);
  return isRead;
}

async function readParts(deps: TransferDeps, account: ListedAccount, renew: Renew): Promise<boolean> {
  const { historyReadsPerSecond: perSecond } = account.chain.network;
  const limit = Math.min(PART, perSecond);
  const due = () => listDueEntries(deps.db, { ...account.held, now: deps.now(), limit });
  const began = performance.now();
  for (let entries = await due(); entries.length > 0; entries = await due()) {
    if (performance.now() - began > RUN_MS || !(await renew())) return false;
    const partBegan = performance.now();
    await readPart(deps, account, entries);
    const wait = (entries.length / perSecond) * 1_000 - (performance.now() - partBegan);
    if (entries.length === limit && wait > 0) await delay(wait);
  }
  return true;
}

/**
 * Reads entries concurrently and records them, or stores the readings of those that have to be compared. An entry that cannot be read or
 * recorded is retried later on its own. Throws ChainError `rpc_unreachable` when no endpoint answered, without reading the rest. Entries
 * that were read are recorded.
 */
async function readPart(deps: TransferDeps, account: ListedAccount, entries: readonly HistoryEntry[]): Promise<void> {
  const read: { entry: HistoryEntry; reading: Reading }[] = [];
  const queue = [...entries];
  let unreachable: ChainError | undefined;
  const go = async (): Promise<void> => {
    for (let entry = queue.shift(); entry; entry = queue.shift()) {
      const reading = await readEntry(account, entry.signature).catch((error: unknown) => ({ error }));
      if (!("error" in reading)) {
        read.push({ entry, reading });
        continue;
      }
      await postponeEntry(deps, account.chain, entry, {
        error: reading.error,
        counts: account.isReachable || !isUnreachable(reading.error),
      });
      if (!isUnreachable(reading.error)) continue;
      unreachable = reading.error;
      queue.splice(0);
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, entries.length) }, go));
  const open = read.filter(({ reading }) => needsComparison(account.chain, reading));
  await storeWaiting(deps, account, open);
  const known = read.filter((one) => !open.includes(one));
  await recordEntries(
    deps,
    account,
    known.map(({ entry, reading }) => ({ entry, ...reading })),
  );
  if (unreachable) throw unreachable;
}
