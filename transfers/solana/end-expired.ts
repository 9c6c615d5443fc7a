import type { FinalizedState } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { moveRows } from "../../db/moves.ts";
import { lockEndable } from "../../db/queries/expired-transfers.ts";
import { keepBookable } from "../../db/queries/failed-bookings.ts";
import { expireTransactions } from "../../db/queries/solana-transactions.ts";
import { listAssigned, type TransferRow, unassignTransfers } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import { bookEach } from "../book-each.ts";
import type { BookEnded } from "../booking-handlers.ts";
import { findReadEpoch } from "../caught-up.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { searchExpired } from "./search-expired.ts";
import type { TrackedTransaction } from "./tracked-transaction.ts";

/**
 * Ends transactions that can no longer be included (`searchExpired`). A buyer's transfer ends then; a payout is signed again.
 * Nothing else ends an accepted transfer. Waits for a second endpoint only briefly: a later pass ends them. Throws ChainError.
 */
export async function endExpiredTransactions(
  deps: TransferDeps,
  chain: SolanaChain,
  {
    book,
    ...seen
  }: { tracked: readonly TrackedTransaction[]; final: FinalizedState; listedHeight: number; book: BookEnded },
): Promise<void> {
  const expired = await searchExpired(deps, chain, seen);
  if (!expired) return;
  await endNeverSubmitted(deps, chain, expired.neverSubmitted, book);
  if (expired.neverSeen.length > 0) await endTransactions(deps, chain, expired.neverSeen, book);
}

/** Ends buyers' transfers whose blockhash expired before a relayer signed. They cannot be included without that signature. */
async function endNeverSubmitted(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly TransferRow[],
  book: BookEnded,
): Promise<void> {
  // A restored database may have lost that a transaction was sent.
  if (rows.length === 0 || (await findReadEpoch(deps, chain.chain)) === undefined) return;
  const reason = "its blockhash expired before it was sent";
  const end = async (db: Db, some: readonly TransferRow[]) => {
    const ids = some.map(({ id }) => id);
    const endable = await lockEndable(db, ids, deps.now());
    const transfers = some.filter(({ id }) => endable.has(id));
    return endTransfers(deps, db, transfers, { reason, book });
  };
  await bookEach(deps, { chain: chain.chain, kind: "ended", rows, subjectOf: ({ id }) => id, book: end });
}

async function endTransactions(
  deps: TransferDeps,
  chain: SolanaChain,
  hashes: readonly string[],
  book: BookEnded,
): Promise<void> {
  const work = { chain: chain.chain, kind: "ended" as const, subjectOf: (hash: string) => hash };
  const end = async (db: Db, some: readonly string[]) => {
    const assigned = await listAssigned(db, await expireTransactions(db, { chain: chain.chain, hashes: some }));
    const payout = "its nonce was used by another transaction";
    const afterCommit = await abandonTransfers(deps, db, assigned, { payment: "its blockhash expired", payout, book });
    return () => {
      deps.log.warn({ chain: chain.chain, transactions: some }, "transactions expired without being included");
      afterCommit();
    };
  };
  await bookEach(deps, { ...work, rows: await keepBookable(deps.db, hashes, work), book: end });
}

/**
 * Handles transfers whose transaction will never make them: ends those of buyers, and unassigns those of the treasury to be
 * signed again. Runs in the database transaction that ends their transactions. Returns a function to call after the commit.
 */
export async function abandonTransfers(
  deps: TransferDeps,
  db: Db,
  assigned: readonly TransferRow[],
  { payment, payout, book }: { payment: string; payout: string; book: BookEnded },
): Promise<() => void> {
  const payouts = assigned.filter(({ purpose }) => purpose !== "payment").map(({ id }) => id);
  await unassignTransfers(db, { ids: payouts, reason: payout, now: deps.now() });
  const payments = assigned.filter(({ purpose }) => purpose === "payment");
  return endTransfers(deps, db, payments, { reason: payment, book });
}

/** Ends and books transfers that can no longer happen. Returns a function to call after the commit. */
async function endTransfers(
  deps: TransferDeps,
  db: Db,
  transfers: readonly TransferRow[],
  { reason, book }: { reason: string; book: BookEnded },
): Promise<() => void> {
  const ended: TransferRow[] = [];
  for (const from of ["ready", "assigned"] as const) {
    const some = transfers.filter(({ state }) => state === from);
    const move = { from, to: "ended" as const, at: deps.now(), detail: { reason } };
    const set = { due_at: null, last_error: reason };
    const moved = new Set(await moveRows(db, "transfer", { ids: some.map(({ id }) => id), ...move, set }));
    ended.push(...some.filter(({ id }) => moved.has(id)));
  }
  const booked = await book(db, ended, reason);
  return () => {
    for (const { id, chain, purpose, state } of ended) {
      deps.log.warn({ transfer: id, chain, reason }, "transfer ended because it can no longer happen");
      deps.metrics.transferTransitions.inc({ chain, purpose, from: state, to: "ended" });
    }
    booked();
  };
}
