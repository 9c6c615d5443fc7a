import { readNonces } from "../../chains/solana/nonces.ts";
import type { SolanaChain } from "../../chains/solana/open.ts";
import { type Final, listNeverSeen } from "../../chains/solana/reads.ts";
import { keepBookable } from "../../db/failed-bookings.ts";
import { moveRows } from "../../db/moves.ts";
import { expireTransactions } from "../../db/solana-transactions.ts";
import type { Db } from "../../db/tables.ts";
import type { TransactionRow } from "../../db/transactions.ts";
import { listCarried, listOutlived, type TransferRow, uncarryTransfers } from "../../db/transfers.ts";
import { findReadEpoch } from "../caught-up.ts";
import type { TransferDeps } from "../deps.ts";
import { bookEach } from "../failed-bookings.ts";
import type { EndedBook } from "../outlive.ts";
import type { Followed } from "./followed.ts";

/** Transfers looked at in one turn. */
const MOST = 100;

/**
 * Ends what can no longer land: the final block height is past what the bytes' blockhash lives for, or their durable nonce
 * has been used up by something else, and two endpoints with their whole history have never seen them. A buyer's payment
 * then has ended; a payout is signed anew. Nothing less ends an accepted transfer.
 */
export async function endDead(
  deps: TransferDeps,
  chain: SolanaChain,
  { followed, final, book }: { followed: readonly Followed[]; final: Final; book: EndedBook },
): Promise<void> {
  await endNeverSubmitted(deps, chain, { final, book });
  const unseen = followed.filter(({ row, status }) => !status && row.state !== "included").map(({ row }) => row);
  const outlived = unseen.filter(({ last_valid_height: last }) => last !== null && last < final.height);
  const { slot, usedUp } = await listUsedUp(chain, unseen);
  const dead = [...outlived, ...usedUp].map(({ hash }) => hash);
  const never = await listNeverSeen(chain, dead, { since: Math.max(final.slot, slot) });
  if (never.size > 0) await endTransactions(deps, chain, [...never], book);
}

/**
 * Those whose durable nonce is another one now, for good, and the slot that shows it. Whoever lags behind their signing
 * tells one from before.
 */
async function listUsedUp(
  chain: SolanaChain,
  unseen: readonly TransactionRow[],
): Promise<{ slot: number; usedUp: TransactionRow[] }> {
  const durable = unseen.filter((row) => row.nonce_account !== null);
  if (durable.length === 0) return { slot: 0, usedUp: [] };
  const places = durable.map((row) => row.nonce_account ?? "");
  const { slot, nonces } = await readNonces(chain, places, "finalized");
  const usedUp = durable.filter(({ nonce_value, nonce_slot }, index) => {
    const nonce = nonces[index];
    return nonce !== undefined && nonce !== nonce_value && slot >= (nonce_slot ?? 0);
  });
  return { slot, usedUp };
}

async function endTransactions(
  deps: TransferDeps,
  chain: SolanaChain,
  hashes: readonly string[],
  book: EndedBook,
): Promise<void> {
  const work = { chain: chain.chain, kind: "ended" as const, subjectOf: (hash: string) => hash };
  const end = async (db: Db, some: readonly string[]) => {
    const carried = await listCarried(db, await expireTransactions(db, { chain: chain.chain, hashes: some }));
    const payout = "its nonce was used up by something else";
    const afterCommit = await giveUp(deps, db, carried, { payment: "its blockhash has died", payout, book });
    return () => {
      deps.log.warn({ chain: chain.chain, transactions: some }, "transactions have died without being seen");
      afterCommit();
    };
  };
  await bookEach(deps, { ...work, rows: await keepBookable(deps.db, hashes, work), book: end });
}

/** Buyers' transactions whose blockhash has died before they were signed by us: without us they never could land. */
async function endNeverSubmitted(
  deps: TransferDeps,
  chain: SolanaChain,
  { final, book }: { final: Final; book: EndedBook },
): Promise<void> {
  const outlived = await listOutlived(deps.db, { chain: chain.chain, at: final.height - 1, limit: MOST });
  const ready = outlived.filter(({ state }) => state === "ready");
  // One that the rows have forgotten to be sent may have landed.
  if (ready.length === 0 || (await findReadEpoch(deps, chain.chain)) === undefined) return;
  const reason = "its blockhash had died before it was sent";
  const end = (db: Db, some: readonly TransferRow[]) => endTransfers(deps, db, some, { reason, book });
  await bookEach(deps, { chain: chain.chain, kind: "ended", rows: ready, subjectOf: ({ id }) => id, book: end });
}

/**
 * Transfers whose transaction has not made them and never will: buyers' have ended, the treasury's are made anew. In the
 * transaction that says so of theirs, so that none is left behind. Gives what is to be done after the commit.
 */
export async function giveUp(
  deps: TransferDeps,
  db: Db,
  carried: readonly TransferRow[],
  { payment, payout, book }: { payment: string; payout: string; book: EndedBook },
): Promise<() => void> {
  const payouts = carried.filter(({ purpose }) => purpose !== "payment").map(({ id }) => id);
  await uncarryTransfers(db, { ids: payouts, reason: payout, now: deps.now() });
  const payments = carried.filter(({ purpose }) => purpose === "payment");
  return endTransfers(deps, db, payments, { reason: payment, book });
}

/** Ends transfers that are not going to happen, and books it. Gives what is to be done after the commit. */
async function endTransfers(
  deps: TransferDeps,
  db: Db,
  transfers: readonly TransferRow[],
  { reason, book }: { reason: string; book: EndedBook },
): Promise<() => void> {
  const ended: TransferRow[] = [];
  for (const from of ["ready", "carried"] as const) {
    const some = transfers.filter(({ state }) => state === from);
    const move = { from, to: "ended" as const, at: deps.now(), detail: { reason } };
    const set = { due_at: null, last_trouble: reason };
    const moved = new Set(await moveRows(db, "transfer", { ids: some.map(({ id }) => id), ...move, set }));
    ended.push(...some.filter(({ id }) => moved.has(id)));
  }
  const booked = await book(db, ended);
  return () => {
    for (const { id, chain, purpose, state } of ended) {
      deps.log.warn({ transfer: id, chain, reason }, "a transfer can no longer happen");
      deps.metrics.transferMoves.inc({ chain, purpose, from: state, to: "ended" });
    }
    booked();
  };
}
