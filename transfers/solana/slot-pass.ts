import { type FinalizedState, readSlotTime } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import type { HistoryProgress } from "../../db/queries/account-cursors.ts";
import { advanceCursor, type Cursor, raiseFinal } from "../../db/queries/chain-cursors.ts";
import { listConfirmable } from "../../db/queries/confirmable-transfers.ts";
import type { FailedBookingRow } from "../../db/queries/failed-bookings.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import { listUnsettled } from "../../db/queries/solana-transactions.ts";
import type { UnmatchedObservation } from "../../db/queries/unmatched-movements.ts";
import { confirmChunk } from "../book-confirmed.ts";
import { bookDust, bookUnmatched } from "../book-unmatched.ts";
import type { BookingHandlers, WatchProgress } from "../booking-handlers.ts";
import { findHistory } from "../caught-up.ts";
import { isLiveHead } from "../head-age.ts";
import { noteHead } from "../note-head.ts";
import { relayWaiting } from "../relay-waiting.ts";
import { beginBookingRetries, endBookingRetries } from "../retry-bookings.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { WATCH_LEASE_MS } from "../watch-lease.ts";
import { rebroadcast } from "./broadcast-transactions.ts";
import { closeOldMarkers } from "./close-markers.ts";
import { endExpiredTransactions } from "./end-expired.ts";
import { findFinalState } from "./final-states.ts";
import { raiseFees } from "./raise-fees.ts";
import { readTrackedTransactions } from "./read-tracked-transactions.ts";
import { listNewest, listWaiting } from "./replacements.ts";
import { keepAgreedMovements, lowerUnagreed } from "./second-endpoint.ts";
import { applyStatuses, isConfirmed } from "./track-statuses.ts";
import type { TrackedTransaction } from "./tracked-transaction.ts";
import { isCursorTooHigh, waitForSlot } from "./wait-for-slot.ts";

/** A transaction that no endpoint knows is broadcast again after this, milliseconds: the same bytes, until they expire. */
const REBROADCAST_MS = 2_000;
/** Transactions that one pass broadcasts again at most. */
const MAX_REBROADCAST = 100;
/** A full pass, which also finishes included transactions whose slot is final, runs every this many slots. */
const FULL_PASS_SLOTS = 5;
/** Included transactions in slots that are not final are read every this many slots, to notice slots that disappeared. */
const REORG_CHECK_SLOTS = 25;
/** Transfers confirmed in one database transaction. */
const CHUNK = 100;

/** The clusters that had transactions in flight in this process's last pass. */
const busy = new WeakSet<SolanaChain>();

/**
 * Makes one pass of a cluster's watcher. Waits for a slot beyond the cursor, reads the statuses of all transactions in flight
 * (256 per call), and broadcasts unknown ones again. Every few slots, a full pass also ends expired transactions and books
 * the movements that the treasury's history shows (`readHistory` reads it separately). The cost depends on the number of
 * slots, and hardly on the number of transactions in flight.
 */
export async function runSlotPass(
  deps: TransferDeps,
  chain: SolanaChain,
  watched: WatchProgress,
  { signal, handlers }: { signal: AbortSignal; handlers: BookingHandlers },
): Promise<void> {
  const before = watched.cursor.number;
  const head = await waitForSlot(chain, before + 1, { signal, inFlight: busy.has(chain) });
  noteHead(deps, chain.chain, head);
  const isDue = (slots: number) => head <= before || Math.floor(head / slots) !== Math.floor(before / slots);
  const isFull = isDue(FULL_PASS_SLOTS);
  // The final slot is read before the statuses. Every transaction in it is then among the rows or already finished.
  const askedAt = deps.now();
  const final = isFull ? await findFinalState(deps, chain) : undefined;
  const includedUpTo = isDue(REORG_CHECK_SLOTS) ? Number.MAX_SAFE_INTEGER : (final?.slot ?? 0);
  // A second endpoint that was behind has kept a movement from being booked, and may have caught up.
  const unconfirmed = isFull && chain.network.finality === "confirmed";
  const rows = await listUnsettled(deps.db, { chain: chain.chain, includedUpTo, unconfirmed });
  const read = await readTrackedTransactions(deps, chain, rows, { final: final?.slot });
  const tracked = await lowerUnagreed(deps, chain, read);
  if (rows.some(({ state }) => state !== "included")) busy.add(chain);
  else busy.delete(chain);
  // The progress is read before the movements are booked, so that a slot counts as booked only when everything up to it is.
  const history = isFull ? await findHistory(deps, chain) : undefined;
  const errors: unknown[] = [];
  // A step that fails must not stop the others.
  const attempt = (step: () => Promise<unknown>) => step().catch((error: unknown) => errors.push(error));
  let tried: FailedBookingRow[] = [];
  if (final)
    await attempt(async () => {
      tried = await beginBookingRetries(deps, chain, { unsolicited: handlers.unsolicited });
    });
  await attempt(() => applyStatuses(deps, chain, tracked, handlers));
  await attempt(() => rebroadcastUnknown(deps, chain, tracked));
  if (final) {
    await attempt(() => noteReached(deps, chain, { watched, askedAt, final, history }));
    const listedHeight = findHeight(final, history ? (history.listedSlot ?? 0) : final.slot);
    await attempt(() => runFullPass(deps, chain, { final, listedHeight, tracked, handlers }, attempt));
  }
  if (head > before || (await isCursorTooHigh(chain, { cursor: before, head }))) {
    watched.cursor = await moveOn(deps, watched, head);
    await attempt(() => relayWaiting(deps, chain, handlers));
  }
  if (errors.length > 0) throw errors[0];
  await endBookingRetries(deps, tried);
  const booked = final && Math.min(final.slot, history?.readSlot ?? 0);
  if (booked && isSettled(tracked, booked)) await raise(deps, watched.cursor, booked);
}

async function moveOn(deps: TransferDeps, { cursor, ...reached }: WatchProgress, head: number): Promise<Cursor> {
  const at = { number: head, blockId: String(head) };
  const ok = await advanceCursor(deps.db, cursor, { ...at, ...reached, leaseMs: WATCH_LEASE_MS });
  // Another process watches by now. Every write of this pass was guarded by the state of its row.
  return ok ? { ...cursor, ...at } : cursor;
}

/**
 * Broadcasts the same bytes of unknown transactions again: the process died before the broadcast, or a leader dropped them. When
 * transactions share a nonce, broadcasts only the newest.
 */
async function rebroadcastUnknown(
  deps: TransferDeps,
  chain: SolanaChain,
  tracked: readonly TrackedTransaction[],
): Promise<void> {
  const now = deps.now().getTime();
  const isDue = (row: SolanaTransactionRow) => now - (row.broadcast_at ?? row.created_at).getTime() >= REBROADCAST_MS;
  const due = listNewest(listWaiting(tracked)).filter(({ row }) => isDue(row));
  await rebroadcast(
    deps,
    chain,
    due.slice(0, MAX_REBROADCAST).map(({ row }) => row),
  );
}

/**
 * Sets the time at which the head was reached, and the time of the newest slot up to which every transaction that names a
 * transfer of ours was read. Deadlines wait for the latter, payouts for both (and for the whole history, see caught-up.ts).
 */
async function noteReached(
  deps: TransferDeps,
  chain: SolanaChain,
  args: { watched: WatchProgress; askedAt: Date; final: FinalizedState; history: HistoryProgress | undefined },
): Promise<void> {
  const { watched, askedAt, final, history } = args;
  const finalTime = await readSlotTime(chain, final.slot);
  if (finalTime)
    deps.metrics.clockSkew.set({ against: chain.chain }, (askedAt.getTime() - finalTime.getTime()) / 1_000);
  if (isLiveHead(chain.network, finalTime, askedAt)) {
    watched.reachedHeadAt = askedAt;
    watched.readUpTo = findHeight(final, history?.readSlot ?? 0);
  }
  const read = Math.min(final.slot, history?.urgentReadSlot ?? 0);
  watched.chainTime = read === final.slot ? finalTime : read > 0 ? await readSlotTime(chain, read) : undefined;
}

/** Returns the height of a slot up to the final one, or a lower one: not every slot has a block. */
const findHeight = (final: FinalizedState, slot: number) => final.height - Math.max(0, final.slot - slot);

/**
 * Runs the steps that only a full pass makes: expired transactions, fees that are too low, old markers, unmatched movements and final
 * transfers.
 */
async function runFullPass(
  deps: TransferDeps,
  chain: SolanaChain,
  {
    final,
    listedHeight,
    tracked,
    handlers,
  }: {
    final: FinalizedState;
    listedHeight: number;
    tracked: readonly TrackedTransaction[];
    handlers: BookingHandlers;
  },
  attempt: (step: () => Promise<unknown>) => Promise<unknown>,
): Promise<void> {
  // This step needs two endpoints, and no other step needs them.
  await attempt(() => endExpiredTransactions(deps, chain, { tracked, final, listedHeight, book: handlers.ended }));
  await attempt(() => raiseFees(deps, chain, { tracked, final }));
  await attempt(() => closeOldMarkers(deps, chain, { slot: final.slot, book: handlers.rent }));
  const keepUnmatched = (rows: readonly UnmatchedObservation[]) =>
    keepAgreedMovements(deps, chain, rows, ({ tx_hash: hash, block_number: slot, ...row }) => ({
      hash,
      slot,
      isOurs: false,
      ...row,
    }));
  const { unmatched: book, unsolicited } = handlers;
  const unmatched = { final: final.slot, book, unsolicited, keepAgreedMovements: keepUnmatched };
  const confirm = () => confirmRest(deps, chain, { tracked, slot: final.slot, handlers });
  // Transfers are first: a stranger can make any number of other movements.
  await attempt(confirm);
  await attempt(async () => {
    if (await bookUnmatched(deps, chain, unmatched)) await confirm();
  });
  await bookDust(deps, chain, { final: final.slot, book: handlers.dust });
}

/** Returns true when all our transactions up to a slot are final, by endpoints that have reached the slot. */
function isSettled(tracked: readonly TrackedTransaction[], upTo: number): boolean {
  return tracked.every(({ row, status, slot }) => {
    if (!status) return row.state !== "included" && slot >= upTo;
    return status.depth === "finalized" || status.slot > upTo;
  });
}

/** Raises the slot up to which the ledger is complete, so that it can be reconciled with the cluster. */
async function raise(deps: TransferDeps, cursor: Cursor, slot: number): Promise<void> {
  if (slot <= cursor.finalNumber) return;
  await raiseFinal(deps.db, { ...cursor, finalNumber: slot });
  cursor.finalNumber = slot;
}

/** Confirms included transfers in final slots that no transaction of ours made, such as unsolicited payments. */
async function confirmRest(
  deps: TransferDeps,
  chain: SolanaChain,
  { tracked, slot, handlers }: { tracked: readonly TrackedTransaction[]; slot: number; handlers: BookingHandlers },
): Promise<void> {
  const shallow = new Set<string>(
    tracked.filter(({ status }) => !status || !isConfirmed(chain, status)).map(({ row }) => row.hash),
  );
  // Transfers that wait for an endpoint must not keep later ones waiting.
  const held: string[] = [];
  for (let full = true; full; ) {
    const found = await listConfirmable(deps.db, { chain: chain.chain, upTo: slot, limit: CHUNK, except: held });
    const deep = found.filter((transfer) => !shallow.has(transfer.tx_hash));
    const agreed = await keepAgreedMovements(deps, chain, deep, (transfer) => ({
      hash: transfer.tx_hash,
      slot: transfer.block_number,
      isOurs: false,
      token: chain.tokens.get(transfer.asset)?.token ?? "",
      amount: transfer.observed_amount,
      receiver: transfer.receiver,
    }));
    const ids = new Set(agreed.map(({ id }) => id));
    held.push(...found.flatMap(({ id }) => (ids.has(id) ? [] : [id])));
    await confirmChunk(deps, chain, agreed, { final: slot, book: handlers.confirmed });
    full = found.length === CHUNK;
  }
}
