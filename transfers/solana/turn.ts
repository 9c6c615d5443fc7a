import type { SolanaChain } from "../../chains/solana/open.ts";
import { type Final, readFinal, readHead, readSlotTime } from "../../chains/solana/reads.ts";
import type { HistoryProgress } from "../../db/account-cursors.ts";
import { advanceCursor, type Cursor, raiseFinal } from "../../db/cursors.ts";
import type { FailedBookingRow } from "../../db/failed-bookings.ts";
import type { StraySighting } from "../../db/sightings.ts";
import { listUnsettled } from "../../db/solana-transactions.ts";
import type { TransactionRow } from "../../db/transactions.ts";
import { listConfirmable } from "../../db/transfers.ts";
import type { Books, Watched } from "../books.ts";
import { findHistory } from "../caught-up.ts";
import { confirmChunk } from "../confirm.ts";
import type { TransferDeps } from "../deps.ts";
import { isLiveHead } from "../head-age.ts";
import { WATCH_LEASE_MS } from "../lease.ts";
import { beginRetries, endRetries } from "../retries.ts";
import { bookDust, bookStray } from "../unmatched.ts";
import { keepAgreed } from "./agreement.ts";
import { closeOldMarkers } from "./close-markers.ts";
import { endDead } from "./dead.ts";
import type { Followed } from "./followed.ts";
import { followStatuses, isConfirmed, readFollowed } from "./statuses.ts";
import { offerAll } from "./store.ts";

/** How long one turn waits for a new slot, milliseconds. */
const PATIENCE_MS = 1_500;
/** What no endpoint has seen yet is sent again after this, milliseconds: the same bytes, until they are dead. */
const AGAIN_MS = 2_000;
/** Transactions sent again in one turn. */
const MOST_AGAIN = 100;
/** Every so many slots what is included is looked at until it is final. */
const LOOK_EVERY_SLOTS = 5;
/** Transfers confirmed in one database transaction. */
const CHUNK = 100;

/**
 * One turn of the one watcher of a cluster: waits for a slot beyond the cursor, asks what became of everything that is on
 * its way (256 transactions to a call), sends again what nobody has seen, and every few slots ends what is dead and books
 * what the history of the treasury has shown (which is read apart, see readHistory). What it costs depends on slots, and
 * hardly on how much is in flight.
 */
export async function runSolanaTurn(
  deps: TransferDeps,
  chain: SolanaChain,
  watched: Watched,
  { signal, books }: { signal: AbortSignal; books: Books },
): Promise<void> {
  const before = watched.cursor.number;
  const head = await waitForSlot(chain, before + 1, signal);
  deps.metrics.headBlock.set({ chain: chain.chain }, head);
  const looks = head <= before || Math.floor(head / LOOK_EVERY_SLOTS) !== Math.floor(before / LOOK_EVERY_SLOTS);
  // Before the rest is asked: what is final by now was stored before, and is among the rows unless it is settled.
  const asked = deps.now();
  const final = looks ? await readFinal(chain) : undefined;
  const rows = await listUnsettled(deps.db, { chain: chain.chain, included: looks });
  const followed = await readFollowed(deps, chain, rows);
  // Before what it has found is booked, so that a slot is called booked only when everything up to it was.
  const history = looks ? await findHistory(deps, chain) : undefined;
  const troubles: unknown[] = [];
  // What cannot be done now must not keep the rest from being done.
  const attempt = (step: () => Promise<unknown>) => step().catch((error: unknown) => troubles.push(error));
  let tried: FailedBookingRow[] = [];
  if (final)
    await attempt(async () => {
      tried = await beginRetries(deps, chain, { cursor: watched.cursor, bound: books.bound });
    });
  await attempt(() => followStatuses(deps, chain, followed, books));
  await attempt(() => sendAgain(deps, chain, followed));
  if (final) {
    await attempt(() => noteReached(deps, chain, { watched, asked, final, history }));
    await attempt(() => lookAround(deps, chain, { final, followed, books }, attempt));
  }
  if (head > before) watched.cursor = await moveOn(deps, watched, head);
  if (troubles.length > 0) throw troubles[0];
  await endRetries(deps, tried);
  const booked = final && Math.min(final.slot, history?.readSlot ?? 0);
  if (booked && isSettled(followed, booked)) await raise(deps, watched.cursor, booked);
}

async function moveOn(deps: TransferDeps, { cursor, ...reached }: Watched, head: number): Promise<Cursor> {
  const ok = await advanceCursor(deps.db, cursor, { number: head, hash: "", ...reached, leaseMs: WATCH_LEASE_MS });
  // Somebody else watches by now; all that was written is guarded by its own state.
  return ok ? { ...cursor, number: head } : cursor;
}

/** The head, as soon as it is at a slot or patience ends. */
async function waitForSlot(chain: SolanaChain, slot: number, signal: AbortSignal): Promise<number> {
  const patience = performance.now() + PATIENCE_MS;
  for (;;) {
    const head = await readHead(chain);
    if (head >= slot || signal.aborted || performance.now() >= patience) return head;
    await new Promise((resolve) => setTimeout(resolve, chain.network.pollMs));
  }
}

/** The same bytes again, for what no endpoint has seen: its process died before sending, or its slot's leader dropped it. */
async function sendAgain(deps: TransferDeps, chain: SolanaChain, followed: readonly Followed[]): Promise<void> {
  const now = deps.now().getTime();
  const isDue = (row: TransactionRow) => now - (row.offered_at ?? row.created_at).getTime() >= AGAIN_MS;
  const due = followed.filter(({ row, status }) => !status && row.state !== "included" && isDue(row));
  await offerAll(
    deps,
    chain,
    due.slice(0, MOST_AGAIN).map(({ row }) => row),
  );
}

/**
 * Notes when the head was reached, and the time of the newest slot up to which everything that names something of ours has
 * been read: deadlines wait for it, payouts for both (and for the rest of the history, see caught-up.ts).
 */
async function noteReached(
  deps: TransferDeps,
  chain: SolanaChain,
  args: { watched: Watched; asked: Date; final: Final; history: HistoryProgress | undefined },
): Promise<void> {
  const { watched, asked, final, history } = args;
  const finalTime = await readSlotTime(chain, final.slot);
  if (finalTime) deps.metrics.clockSkew.set({ against: chain.chain }, (asked.getTime() - finalTime.getTime()) / 1_000);
  if (isLiveHead(chain.network, finalTime, asked)) {
    watched.reachedHeadAt = asked;
    watched.readUpTo = Math.min(final.slot, history?.readSlot ?? 0);
  }
  const read = Math.min(final.slot, history?.namedSlot ?? 0);
  watched.chainTime = read === final.slot ? finalTime : read > 0 ? await readSlotTime(chain, read) : undefined;
}

/** What needs no hurry: final slots, dead transactions, money that came by itself and was found in the history. */
async function lookAround(
  deps: TransferDeps,
  chain: SolanaChain,
  { final, followed, books }: { final: Final; followed: readonly Followed[]; books: Books },
  attempt: (step: () => Promise<unknown>) => Promise<unknown>,
): Promise<void> {
  // It needs two endpoints, and nothing else waits for them.
  await attempt(() => endDead(deps, chain, { followed, final, book: books.ended }));
  await attempt(() => closeOldMarkers(deps, chain, { slot: final.slot, book: books.rent }));
  await attempt(() => confirmRest(deps, chain, { followed, slot: final.slot, books }));
  const keepStray = (rows: readonly StraySighting[]) =>
    keepAgreed(deps, chain, rows, ({ tx_hash: hash, block_number: slot, ...row }) => ({
      ...{ hash, slot, isOurs: false },
      ...row,
    }));
  await bookStray(deps, chain, { final: final.slot, book: books.stray, keepAgreed: keepStray });
  await bookDust(deps, chain, { final: final.slot, book: books.dust });
}

/** Up to this slot everything of ours has been seen and is final, by the word of endpoints that have come there. */
function isSettled(followed: readonly Followed[], upTo: number): boolean {
  return followed.every(({ row, status, slot }) => {
    if (!status) return row.state !== "included" && slot >= upTo;
    return status.depth === "finalized" || status.slot > upTo;
  });
}

/** Up to here the books are complete: they can be compared with the cluster. */
async function raise(deps: TransferDeps, cursor: Cursor, slot: number): Promise<void> {
  if (slot <= cursor.finalNumber) return;
  await raiseFinal(deps.db, { chain: cursor.chain, finalNumber: slot });
  cursor.finalNumber = slot;
}

/** Included transfers of final slots that no transaction of ours speaks for, such as money that came by itself. */
async function confirmRest(
  deps: TransferDeps,
  chain: SolanaChain,
  { followed, slot, books }: { followed: readonly Followed[]; slot: number; books: Books },
): Promise<void> {
  const shallow = new Set<string>(
    followed.filter(({ status }) => !status || !isConfirmed(chain, status)).map(({ row }) => row.hash),
  );
  const found = await listConfirmable(deps.db, { chain: chain.chain, upTo: slot, limit: CHUNK });
  const deep = found.filter((transfer) => !shallow.has(transfer.tx_hash));
  const agreed = await keepAgreed(deps, chain, deep, (transfer) => ({
    ...{ hash: transfer.tx_hash, slot: transfer.block_number, isOurs: false },
    token: chain.tokens.get(transfer.asset)?.token ?? "",
    ...{ amount: transfer.amount, receiver: transfer.receiver },
  }));
  await confirmChunk(deps, chain, agreed, { final: slot, book: books.confirmed });
}
