import { type FinalizedState, listNeverSeen, readAgreedHeight } from "../../chains/solana/cluster-state.ts";
import { readNonces } from "../../chains/solana/nonce-accounts.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { moveRows } from "../../db/moves.ts";
import { listExpiredReady } from "../../db/queries/expired-transfers.ts";
import { keepBookable } from "../../db/queries/failed-bookings.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import { expireTransactions } from "../../db/queries/solana-transactions.ts";
import { listAssigned, type TransferRow, unassignTransfers } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import { bookEach } from "../book-each.ts";
import type { BookEnded } from "../booking-handlers.ts";
import { findReadEpoch } from "../caught-up.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { TrackedTransaction } from "./tracked-transaction.ts";

/** Transfers checked in one pass at most. */
const MAX_CHECKED = 100;

/**
 * Ends transactions that can no longer be included: the final block height of two endpoints is past the lifetime of their
 * blockhash, or another transaction used their durable nonce, and two endpoints with full history do not know them. A buyer's transfer ends then;
 * a payout is signed again. Nothing else ends an accepted transfer.
 */
export async function endExpiredTransactions(
  deps: TransferDeps,
  chain: SolanaChain,
  { tracked, final, book }: { tracked: readonly TrackedTransaction[]; final: FinalizedState; book: BookEnded },
): Promise<void> {
  await endNeverSubmitted(deps, chain, { final, book });
  const unseen = tracked.filter(({ row, status }) => !status && row.state !== "included").map(({ row }) => row);
  const expired = await keepExpired(chain, unseen, final);
  const { slot, usedUp } = await listUsedUp(chain, unseen);
  const dead = [...expired, ...usedUp].map(({ hash }) => hash);
  const never = await listNeverSeen(chain, dead, { since: Math.max(final.slot, slot) });
  if (never.size > 0) await endTransactions(deps, chain, [...never], book);
}

/**
 * Returns those of these rows whose last height two endpoints have passed: one endpoint could end everything in flight by the
 * height that it reports. Asks the second endpoint only when the first one has passed a height. Throws ChainError.
 */
async function keepExpired<R extends { last_valid_height: number | null }>(
  chain: SolanaChain,
  rows: readonly R[],
  final: FinalizedState,
): Promise<R[]> {
  const listPast = (height: number) => rows.filter(({ last_valid_height: last }) => last !== null && last < height);
  const expired = listPast(final.height);
  if (expired.length === 0 || chain.network.rpc.length < 2) return expired;
  return listPast(Math.min(final.height, await readAgreedHeight(chain)));
}

/**
 * Returns the transactions whose durable nonce has a new final value, and the slot of that value. Ignores values from before
 * the signing, which a lagging endpoint returns.
 */
async function listUsedUp(
  chain: SolanaChain,
  unseen: readonly SolanaTransactionRow[],
): Promise<{ slot: number; usedUp: SolanaTransactionRow[] }> {
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

/** Ends buyers' transfers whose blockhash expired before a relayer signed. They cannot be included without that signature. */
async function endNeverSubmitted(
  deps: TransferDeps,
  chain: SolanaChain,
  { final, book }: { final: FinalizedState; book: BookEnded },
): Promise<void> {
  const ready = await listExpiredReady(deps.db, { chain: chain.chain, height: final.height, limit: MAX_CHECKED });
  // A restored database may have lost that a transaction was sent.
  if (ready.length === 0 || (await findReadEpoch(deps, chain.chain)) === undefined) return;
  const reason = "its blockhash expired before it was sent";
  const rows = await keepExpired(chain, ready, final);
  const end = (db: Db, some: readonly TransferRow[]) => endTransfers(deps, db, some, { reason, book });
  await bookEach(deps, { chain: chain.chain, kind: "ended", rows, subjectOf: ({ id }) => id, book: end });
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
  const booked = await book(db, ended);
  return () => {
    for (const { id, chain, purpose, state } of ended) {
      deps.log.warn({ transfer: id, chain, reason }, "transfer ended because it can no longer happen");
      deps.metrics.transferTransitions.inc({ chain, purpose, from: state, to: "ended" });
    }
    booked();
  };
}
