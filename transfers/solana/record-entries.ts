import { ChainError } from "../../chains/errors.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open-solana-chain.ts";
import { type HeldAccount, relistFrom } from "../../db/queries/account-cursors.ts";
import { type HistoryEntry, recordEntryErrors, takeEntries } from "../../db/queries/history-entries.ts";
import { listKnownMovements } from "../../db/queries/observations.ts";
import { cleanText } from "../../runtime/clean-text.ts";
import type { BookingHandlers } from "../booking-handlers.ts";
import { MAX_READ_ATTEMPTS } from "../history-attempts.ts";
import { recordBlocks } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { bookForgotten } from "./forgotten-transactions.ts";
import { releaseInvented } from "./invented-entries.ts";
import type { Found } from "./read-entry.ts";

/** Delay before an unreadable entry is read again, and its maximum, up to which it doubles, milliseconds. */
const FIRST_RETRY_MS = 2_000;
const MAX_RETRY_MS = 10 * 60_000;
/** The same for an entry that names a payment or payout of ours. */
const MAX_URGENT_RETRY_MS = 60_000;

/** Functions that book what the history shows. */
export type HistoryHandlers = Pick<BookingHandlers, "unsolicited" | "gas" | "rent">;
/** A token account of the treasury, with the lease on its history. */
export type HistoryAccount = { chain: SolanaChain; token: SolanaToken; held: HeldAccount; handlers: HistoryHandlers };
/** What an entry shows. `isAlone` is true when one endpoint shows it that is believed while the others are out. */
export type FoundEntry = { entry: HistoryEntry; isAlone?: boolean } & Found;

/** Records entries in one database transaction. When one of them fails, records each one alone, and retries those that fail. */
export async function recordEntries(
  deps: TransferDeps,
  account: HistoryAccount,
  reads: readonly FoundEntry[],
): Promise<void> {
  const [first, ...others] = reads;
  if (!first) return;
  try {
    await recordTogether(deps, account, reads);
  } catch (error) {
    if (others.length === 0) return postponeEntry(deps, account.chain, first.entry, { error, counts: true });
    for (const one of reads) await recordEntries(deps, account, [one]);
  }
}

async function recordTogether(
  deps: TransferDeps,
  account: HistoryAccount,
  reads: readonly FoundEntry[],
): Promise<void> {
  const { chain, held, handlers } = account;
  const signatures = reads.map(({ entry }) => entry.signature);
  const [oldest] = reads
    .filter(({ isAlone }) => isAlone)
    .map(({ entry }) => entry)
    .toSorted((one, other) => one.slot - other.slot);
  const count = await deps.db.transaction().execute(async (db) => {
    if (oldest && !(await relistFrom(db, held, oldest))) return () => undefined;
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
export async function postponeEntry(
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

/** Returns when an entry is retried. */
export function findRetry(
  deps: Pick<TransferDeps, "now">,
  { attempts_made: attemptsMade, urgent }: Pick<HistoryEntry, "attempts_made" | "urgent">,
): Date {
  const wait = Math.min(FIRST_RETRY_MS * 2 ** attemptsMade, urgent ? MAX_URGENT_RETRY_MS : MAX_RETRY_MS);
  return new Date(deps.now().getTime() + wait);
}
