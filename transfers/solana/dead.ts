import { readNonces } from "../../chains/solana/nonces.ts";
import type { SolanaChain } from "../../chains/solana/open.ts";
import { listNeverSeen } from "../../chains/solana/reads.ts";
import { moveRows } from "../../db/moves.ts";
import { expireTransactions } from "../../db/solana-transactions.ts";
import type { TransactionRow } from "../../db/transactions.ts";
import { listCarried, listOutlived, type TransferRow, uncarryTransfers } from "../../db/transfers.ts";
import type { TransferDeps } from "../deps.ts";
import type { EndedBook } from "../outlive.ts";
import type { Followed } from "./statuses.ts";

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
  args: { followed: readonly Followed[]; height: number; book: EndedBook },
): Promise<void> {
  const unseen = args.followed.filter(({ row, status }) => !status && row.state !== "included").map(({ row }) => row);
  const outlived = unseen.filter(({ last_valid_height: last }) => last !== null && last < args.height);
  const dead = [...outlived, ...(await listUsedUp(chain, unseen))];
  if (dead.length > 0) await endTransactions(deps, chain, dead, args.book);
  await endNeverSubmitted(deps, chain, args);
}

/** Those whose durable nonce is another one now, for good. */
async function listUsedUp(chain: SolanaChain, unseen: readonly TransactionRow[]): Promise<TransactionRow[]> {
  const durable = unseen.filter((row) => row.nonce_account !== null);
  if (durable.length === 0) return [];
  const nonces = await readNonces(
    chain,
    durable.map((row) => row.nonce_account ?? ""),
    "finalized",
  );
  return durable.filter((row, index) => nonces[index] !== undefined && nonces[index] !== row.nonce_value);
}

async function endTransactions(
  deps: TransferDeps,
  chain: SolanaChain,
  dead: readonly TransactionRow[],
  book: EndedBook,
): Promise<void> {
  const never = await listNeverSeen(
    chain,
    dead.map(({ hash }) => hash),
  );
  const hashes = dead.map(({ hash }) => hash).filter((hash) => never.has(hash));
  if (hashes.length === 0) return;
  const stranded = await deps.db.transaction().execute(async (db) => {
    const left = await listCarried(db, await expireTransactions(db, { chain: chain.chain, hashes }));
    const payouts = left.filter(({ purpose }) => purpose !== "payment").map(({ id }) => id);
    await uncarryTransfers(db, { ids: payouts, reason: "its nonce was used up by something else", now: deps.now() });
    return left.filter(({ purpose }) => purpose === "payment");
  });
  deps.log.warn({ chain: chain.chain, transactions: hashes }, "transactions have died without being seen");
  await endTransfers(deps, stranded, { reason: "its blockhash has died", book });
}

/** Buyers' transactions whose blockhash has died before they were signed by us: without us they never could land. */
async function endNeverSubmitted(
  deps: TransferDeps,
  chain: SolanaChain,
  args: { height: number; book: EndedBook },
): Promise<void> {
  const outlived = await listOutlived(deps.db, { chain: chain.chain, at: args.height - 1, limit: MOST });
  const ready = outlived.filter(({ state }) => state === "ready");
  await endTransfers(deps, ready, { reason: "its blockhash had died before it was sent", book: args.book });
}

/** Ends transfers that are not going to happen, each booked with its move. */
export async function endTransfers(
  deps: TransferDeps,
  transfers: readonly TransferRow[],
  { reason, book }: { reason: string; book: EndedBook },
): Promise<void> {
  for (const transfer of transfers) {
    const { id, chain, purpose } = transfer;
    const from = transfer.state as "ready" | "carried";
    const afterCommit = await deps.db.transaction().execute(async (db) => {
      const move = { ids: [id], from, to: "ended" as const, at: deps.now(), detail: { reason } };
      const moved = await moveRows(db, "transfer", { ...move, set: { due_at: null, last_trouble: reason } });
      return moved.length === 0 ? undefined : await book(db, [transfer]);
    });
    if (!afterCommit) continue;
    deps.log.warn({ transfer: id, chain, reason }, "a transfer can no longer happen");
    deps.metrics.transferMoves.inc({ chain, purpose, from, to: "ended" });
    afterCommit();
  }
}
