import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ChainError } from "../../chains/errors.ts";
import { getSolanaChain } from "../../chains/open-chains.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open-solana-chain.ts";
import { type HeldAccount, releaseAccount, takeAccount, updateReadProgress } from "../../db/queries/account-cursors.ts";
import { type HistoryEntry, listDueEntries, recordEntryErrors, takeEntries } from "../../db/queries/history-entries.ts";
import { listKnownMovements } from "../../db/queries/observations.ts";
import { cleanText } from "../../runtime/clean-text.ts";
import type { BookingHandlers } from "../booking-handlers.ts";
import { MAX_READ_ATTEMPTS } from "../history-attempts.ts";
import { recordBlocks } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { compareReadings, type ReadEntry } from "./compare-readings.ts";
import { readFinalState } from "./final-states.ts";
import { bookForgotten } from "./forgotten-transactions.ts";
import { releaseInvented } from "./invented-entries.ts";
import { listHistory } from "./list-history.ts";
import { type Found, needsComparison, readEntry } from "./read-entry.ts";
import { relistHistory } from "./relist-history.ts";

/** Another reader can take over an account when its reader has not renewed the lease for this long, milliseconds. */
const LEASE_MS = 30_000;
/** Time limit of one run, milliseconds. Another job continues then. */
const RUN_MS = 5_000;
/** Slots by which an endpoint may be behind the one that has reported its final slot, and still makes a listing complete. */
const BEHIND_SLOTS = 10;
/** Transactions that are recorded together, and concurrent calls. */
const PART = 64;
const CONCURRENCY = 16;
/** Delay before an unreadable entry is read again, and its maximum, up to which it doubles, milliseconds. */
const FIRST_RETRY_MS = 2_000;
const MAX_RETRY_MS = 10 * 60_000;
/** The same for an entry that names a payment or payout of ours. */
const MAX_URGENT_RETRY_MS = 60_000;

/** Functions that book what the history shows. */
type HistoryHandlers = Pick<BookingHandlers, "unsolicited" | "gas" | "rent">;

type Account = { chain: SolanaChain; token: SolanaToken; held: HeldAccount; handlers: HistoryHandlers };
/** `isReachable` is false when no endpoint answered the listing either: that entries cannot be read then says nothing about them. */
type ListedAccount = Account & { isReachable: boolean };

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

async function readAccount(deps: TransferDeps, account: Account): Promise<boolean> {
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
    const isRead = await readEntries(deps, { ...account, isReachable }, async () => (await take()) !== undefined);
    if (typeof listed === "object") throw listed.error;
    return !listed || !isRead;
  } finally {
    await updateReadProgress(deps.db, held, { unreadable: MAX_READ_ATTEMPTS });
    await releaseAccount(deps.db, held);
  }
}

const leaseEnd = (deps: TransferDeps) => new Date(deps.now().getTime() + LEASE_MS);

/**
 * Reads parts until nothing is due or the time limit is reached, no faster than the network's setting allows. Then compares what one
 * endpoint must not decide.
 */
async function readEntries(
  deps: TransferDeps,
  account: ListedAccount,
  renew: () => Promise<boolean>,
): Promise<boolean> {
  const open: ReadEntry[] = [];
  const isRead = await readParts(deps, account, { open, renew });
  if (open.length > 0 && (await renew())) await compare(deps, account, open);
  return isRead;
}

async function readParts(
  deps: TransferDeps,
  account: ListedAccount,
  { open, renew }: { open: ReadEntry[]; renew: () => Promise<boolean> },
): Promise<boolean> {
  const { historyReadsPerSecond: perSecond } = account.chain.network;
  const limit = Math.min(PART, perSecond);
  const due = () => listDueEntries(deps.db, { ...account.held, now: deps.now(), limit });
  const began = performance.now();
  for (let entries = await due(); entries.length > 0; entries = await due()) {
    if (performance.now() - began > RUN_MS || !(await renew())) return false;
    const partBegan = performance.now();
    open.push(...(await readPart(deps, account, entries)));
    const wait = (entries.length / perSecond) * 1_000 - (performance.now() - partBegan);
    if (entries.length === limit && wait > 0) await delay(wait);
  }
  return true;
}

type Read = { entry: HistoryEntry } & Found;

/**
 * Reads entries concurrently and records them. An entry that cannot be read or recorded is retried later on its own. Returns those
 * that have to be compared, which are retried together if that fails. Throws ChainError `rpc_unreachable` when no endpoint answered,
 * without reading the rest. Entries that were read are recorded.
 */
async function readPart(
  deps: TransferDeps,
  account: ListedAccount,
  entries: readonly HistoryEntry[],
): Promise<ReadEntry[]> {
  const read: ReadEntry[] = [];
  const queue = [...entries];
  let unreachable: ChainError | undefined;
  const go = async (): Promise<void> => {
    for (let entry = queue.shift(); entry; entry = queue.shift()) {
      const reading = await readEntry(account, entry.signature).catch((error: unknown) => ({ error }));
      if (!("error" in reading)) {
        read.push({ entry, reading });
        continue;
      }
      await postpone(deps, account.chain, entry, {
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
  await postponeOpen(deps, account, open);
  const known = read.filter((one) => !open.includes(one));
  await record(
    deps,
    account,
    known.map(({ entry, reading }) => ({ entry, ...reading })),
  );
  if (unreachable) throw unreachable;
  return open;
}

/** Records what counts of these entries, and stores why the others do not count yet. */
async function compare(deps: TransferDeps, account: Account, open: readonly ReadEntry[]): Promise<void> {
  const { reads, failures } = await compareReadings(deps, account, open);
  await record(deps, account, reads);
  for (const { entry, error } of failures) await postpone(deps, account.chain, entry, { error, counts: true });
  const left = open.length - reads.length - failures.length;
  if (left > 0)
    deps.log.warn(
      { chain: account.chain.chain, account: account.held.account, count: left },
      "transactions without a movement that instructions explain wait for a second endpoint",
    );
}

/** Records entries in one database transaction. When one of them fails, records each one alone. */
async function record(deps: TransferDeps, account: Account, reads: readonly Read[]): Promise<void> {
  const [first, ...others] = reads;
  if (!first) return;
  try {
    await recordTogether(deps, account, reads);
  } catch (error) {
    if (others.length === 0) return postpone(deps, account.chain, first.entry, { error, counts: true });
    for (const one of reads) await record(deps, account, [one]);
  }
}

async function recordTogether(deps: TransferDeps, account: Account, reads: readonly Read[]): Promise<void> {
  const { chain, held, handlers } = account;
  const signatures = reads.map(({ entry }) => entry.signature);
  const count = await deps.db.transaction().execute(async (db) => {
    const ours = await takeEntries(db, held, signatures);
    const taken = reads.filter(({ entry }) => ours.has(entry.signature));
    await bookForgotten(
      deps,
      db,
      taken.flatMap(({ forgotten }) => forgotten ?? []),
      handlers,
    );
    const all = taken.flatMap(({ seen }) => seen);
    // A movement that was recorded before keeps its transfer.
    const known = await listKnownMovements(db, chain.chain, all);
    const seen = all.filter((one) => !known.has(`${one.blockId} ${one.txHash} ${one.logIndex}`));
    return recordBlocks(db, deps, chain, { seen, landed: [], unsolicited: handlers.unsolicited });
  });
  count();
}

/** Stores an entry's error with it and schedules its retry. The attempt counts only if `counts` says so. Throws database errors. */
async function postpone(
  deps: TransferDeps,
  cluster: SolanaChain,
  entry: HistoryEntry,
  { error, counts }: { error: unknown; counts: boolean },
): Promise<void> {
  const { chain, account, signature } = entry;
  const attemptsMade = entry.attempts_made + (counts ? 1 : 0);
  const text = cleanText(error instanceof Error ? `${error.name}: ${error.message}` : String(error), 200);
  const dueAt = findRetry(deps, entry);
  await recordEntryErrors(deps.db, entry, [signature], { error: text, attemptsMade, dueAt });
  const facts = { chain, account, tx: signature, attemptsMade, err: error };
  if (attemptsMade >= MAX_READ_ATTEMPTS) deps.log.error(facts, "transaction of the treasury's history cannot be read");
  else deps.log.warn(facts, "transaction of the treasury's history cannot be read now and is retried");
  await releaseInvented(deps, cluster, { entry, attemptsMade, error }).catch((err: unknown) => {
    if (!(err instanceof ChainError)) throw err;
    deps.log.warn({ ...facts, err }, "endpoints cannot say whether a transaction of the treasury's history exists");
  });
}

/**
 * Schedules the retry of entries that have to be compared, before that. So one that is not compared keeps no later one waiting. They
 * count as attempts, which limits how long they delay payouts.
 */
async function postponeOpen(deps: TransferDeps, { held }: Account, open: readonly ReadEntry[]): Promise<void> {
  const entries = open.map(({ entry }) => entry);
  const groups = Map.groupBy(entries, (entry) => `${entry.attempts_made} ${entry.urgent}`);
  for (const group of groups.values()) {
    const [entry] = group;
    if (!entry) continue;
    const signatures = group.map(({ signature }) => signature);
    const state = { attemptsMade: entry.attempts_made + 1, dueAt: findRetry(deps, entry) };
    await recordEntryErrors(deps.db, held, signatures, { error: "a second endpoint has to show the same", ...state });
  }
}

/** Returns when an entry is read again. */
function findRetry(deps: TransferDeps, { attempts_made: attemptsMade, urgent }: HistoryEntry): Date {
  const wait = Math.min(FIRST_RETRY_MS * 2 ** attemptsMade, urgent ? MAX_URGENT_RETRY_MS : MAX_RETRY_MS);
  return new Date(deps.now().getTime() + wait);
}
