import type { AccountCursor } from "../../db/queries/account-cursors.ts";
import {
  forgetReadings,
  type HistoryEntry,
  listWaitingEntries,
  recordEntryErrors,
  storeReadings,
  type WaitingEntry,
} from "../../db/queries/history-entries.ts";
import { MAX_READ_ATTEMPTS } from "../history-attempts.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { compareReadings } from "./compare-readings.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";
import { digestReading, type Reading } from "./read-entry.ts";
import { findRetry, type HistoryAccount, postponeEntry, recordEntries } from "./record-entries.ts";

/** Waiting entries of one run. A later run takes the others. */
const PART = 1_000;

/**
 * Stores what one endpoint has shown of entries that another one has to show as well (`needsComparison`). Strangers make such entries
 * cheaply, so they are not read from the first endpoint again, however long they wait. The digest of a reading suffices, because what is
 * recorded is always what an endpoint shows at that time.
 */
export async function storeWaiting(
  deps: Pick<TransferDeps, "db">,
  { held }: Pick<HistoryAccount, "held">,
  open: readonly { entry: HistoryEntry; reading: Reading }[],
): Promise<void> {
  const shown = open.map(({ entry, reading }) => {
    return { signature: entry.signature, reading: { by: reading.by, digest: digestReading(reading) } };
  });
  await storeReadings(deps.db, held, shown);
}

/** Compares entries that wait for another endpoint. Records what counts of them, and stores why the others do not count yet. */
export async function compareWaiting(
  deps: TransferDeps,
  account: HistoryAccount,
  cursor: AccountCursor,
): Promise<void> {
  const { chain, held } = account;
  const all = await listWaitingEntries(deps.db, { ...held, now: deps.now(), limit: PART });
  const waiting = all.filter((entry) => isComparable(account, entry));
  const others = all.filter((entry) => !waiting.includes(entry));
  await postponeAll(deps, account, waiting);
  const { reads, failures } = await compareReadings(deps, account, { waiting, isRelisted: isRelisted(cursor) });
  await recordEntries(deps, account, reads);
  for (const { entry, error } of failures) await postponeEntry(deps, chain, entry, { error, counts: true });
  // Endpoints that contradict each other are all asked again, because the first one may be the one that is repaired.
  const contradicted = failures
    .filter(({ entry, isContradicted }) => isContradicted || mayBeInvented(entry))
    .map(({ entry }) => entry);
  await forgetReadings(
    deps.db,
    held,
    [...others, ...contradicted].map(({ signature }) => signature),
  );
  const left = waiting.length - reads.length - failures.length;
  if (left > 0)
    deps.log.warn(
      { chain: chain.chain, account: held.account, count: left },
      "transactions without a movement that instructions explain wait for a second endpoint",
    );
}

/**
 * Returns true for an entry that has held what it names for long, and that one endpoint alone has shown. It may not show it any more:
 * once no endpoint has the transaction, what the entry names waits for it no longer (`releaseInvented`).
 */
function mayBeInvented({ urgent, attempts_made: attemptsMade }: WaitingEntry): boolean {
  return urgent && attemptsMade >= MAX_READ_ATTEMPTS;
}

/** Returns false for an entry that an endpoint has shown which is not in the networks file any more, or when only one is left there. */
function isComparable({ chain: { network } }: HistoryAccount, { reading }: WaitingEntry): boolean {
  return network.rpc.length >= REQUIRED_ENDPOINTS && network.rpc.some(({ name }) => name === reading.by);
}

/**
 * Returns a function that says whether two endpoints will list an entry again, when it is recorded now: otherwise one endpoint that hides a
 * movement could end it for ever. Those that are listed again already may have passed its place. While the others are out (`isOut`), an
 * urgent entry that was listed before is listed again with the rest (`relistFrom`). Of an entry that is not urgent, one endpoint may have
 * invented the slot, and it delays nothing for long.
 */
function isRelisted({ relist_slot: since, relist_before: places }: AccountCursor) {
  return ({ slot, urgent }: HistoryEntry, isOut: boolean) =>
    since !== null && ((isOut && urgent) || (places === null && slot > since));
}

/**
 * Schedules the retry of entries before they are compared, so that one that is not compared keeps no later one waiting. This counts as an
 * attempt, which limits how long they delay payouts.
 */
async function postponeAll(
  deps: Pick<TransferDeps, "db" | "now">,
  { held }: HistoryAccount,
  waiting: readonly WaitingEntry[],
): Promise<void> {
  const groups = Map.groupBy(waiting, (entry) => `${entry.attempts_made} ${entry.urgent}`);
  for (const group of groups.values()) {
    const [entry] = group;
    if (!entry) continue;
    const signatures = group.map(({ signature }) => signature);
    const state = { attemptsMade: entry.attempts_made + 1, dueAt: findRetry(deps, entry) };
    await recordEntryErrors(deps.db, held, signatures, { error: "a second endpoint has to show the same", ...state });
  }
}
