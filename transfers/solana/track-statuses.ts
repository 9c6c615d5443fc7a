import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { calculateFee } from "../../chains/solana/priority-fees.ts";
import type { SignatureStatus } from "../../chains/solana/signature-statuses.ts";
import { findTransferIndex } from "../../chains/solana/treasury-movements.ts";
import { parseTransaction } from "../../chains/solana/wire-format.ts";
import type { TokenMovement } from "../../chains/token-movement.ts";
import { moveRows } from "../../db/moves.ts";
import { deleteFailedMovements, keepBookable } from "../../db/queries/failed-bookings.ts";
import { orphanTransactions } from "../../db/queries/observations.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import { finishByHash, markLanded, revertLanded } from "../../db/queries/solana-transactions.ts";
import { listAssigned, type TransferRow } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import { attemptAll } from "../attempt-all.ts";
import { confirmChunk } from "../book-confirmed.ts";
import { bookEach } from "../book-each.ts";
import type { BookingHandlers } from "../booking-handlers.ts";
import { recordBlocks } from "../record-movements.ts";
import { traceInclusion } from "../trace-transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { bookParts } from "./book-parts.ts";
import { abandonTransfers } from "./end-expired.ts";
import { listNeverIncluded } from "./never-included.ts";
import { bookRents, readRents } from "./rents.ts";
import { listOvertaken, withoutContradictions } from "./replacements.ts";
import { keepAgreedMovements } from "./second-endpoint.ts";
import type { TrackedTransaction } from "./tracked-transaction.ts";

/** Transfers confirmed in one database transaction. */
const CHUNK = 100;

/** Returns true when a status is at the depth of the network's finality. */
export function isConfirmed(chain: SolanaChain, status: SignatureStatus): boolean {
  return status.depth === "finalized" || status.depth === chain.network.finality;
}

/**
 * Applies the statuses of our transactions. A transaction that is at least `confirmed` becomes included, and all its transfers
 * with it unless it failed. The fee of a final transaction is booked. A transaction that disappeared from its slot, or whose
 * outcome an endpoint had reported wrongly, is reverted, because it can be included again. A step that fails does not stop the others.
 * Throws the first error at the end.
 */
export async function applyStatuses(
  deps: TransferDeps,
  chain: SolanaChain,
  tracked: readonly TrackedTransaction[],
  handlers: BookingHandlers,
): Promise<void> {
  const known = withoutContradictions(tracked).flatMap(({ row, status }) => (status ? [{ row, status }] : []));
  const moved = known.filter(({ row, status }) => row.state === "included" && isElsewhere(row, status));
  const isNew = (one: KnownTransaction) => one.row.state !== "included" || moved.includes(one);
  const isLanded = (one: KnownTransaction) => one.status.depth !== "processed" && isNew(one);
  const isDeep = ({ status }: KnownTransaction) => !status.error && isConfirmed(chain, status);
  const landed = known.filter(isLanded);
  const unconfirmed = known.filter((one) => isDeep(one) && !isLanded(one));
  const final = known.filter(({ status }) => status.depth === "finalized");
  await attemptAll([
    () => revert(deps, chain, [...moved, ...listOvertaken(tracked)]),
    () =>
      bookParts(
        deps,
        { chain: chain.chain, rows: landed },
        {
          record: (part) => recordLanded(deps, chain, part, handlers),
          confirm: (part) => confirmDeep(deps, chain, part.filter(isDeep), handlers),
        },
      ),
    () => confirmDeep(deps, chain, unconfirmed, handlers),
    () => finish(deps, chain, final, handlers),
    // Last, because it needs two endpoints and no other step must wait for them.
    async () => revert(deps, chain, await listVanished(deps, chain, tracked)),
  ]);
}

/** Returns true when a transaction is not in the slot where it was recorded, or has another outcome there. */
function isElsewhere(row: SolanaTransactionRow, status: SignatureStatus): boolean {
  const hasOtherOutcome = row.reverted !== null && row.reverted === !status.error;
  return status.slot !== row.slot || (hasOtherOutcome && status.depth !== "processed");
}

type KnownTransaction = { row: SolanaTransactionRow; status: SignatureStatus };

async function recordLanded(
  deps: TransferDeps,
  chain: SolanaChain,
  landed: readonly KnownTransaction[],
  handlers: BookingHandlers,
): Promise<void> {
  const chainId = chain.chain;
  const book = async (db: Db, some: readonly KnownTransaction[]) => {
    const good = some.filter(({ status }) => !status.error);
    const assigned = await listAssigned(
      db,
      good.map(({ row }) => row),
      // A transfer that was confirmed before its slot disappeared gets a new proof. One that its buyer's own transfer has made
      // already gets none: the money of this transaction is a deposit without a payment.
      ["assigned", "included", "confirmed"],
    );
    const seen = good.flatMap((one) =>
      assigned
        .filter((transfer) => transfer.lane_id === one.row.lane_id && transfer.lane_nonce === one.row.nonce)
        .map((transfer) => toSeen(one, transfer)),
    );
    const recorded = await recordBlocks(db, deps, chain, { seen, landed: [], unsolicited: handlers.unsolicited });
    const landings = some.map(({ row, status }) => {
      return { hash: row.hash, slot: status.slot, fee: readFee(row), failed: status.error !== undefined };
    });
    await markLanded(db, { chain: chainId, landings });
    return () => {
      recorded();
      // A first broadcast that was accepted is not stored, and follows the creation of the row at once.
      const sent = some.map(({ row }) => ({ ...row, broadcast_at: row.broadcast_at ?? row.created_at }));
      traceInclusion(deps, { chain: chainId, transfers: assigned, sent });
      for (const { row, status } of some) {
        deps.metrics.transactions.inc({ chain: chainId, state: status.error ? "reverted" : "included" });
        if (status.error)
          deps.log.warn({ chain: chainId, tx: row.hash, error: status.error }, "transaction failed on the chain");
      }
    };
  };
  await bookTransactions(deps, chain, await keepBookable(deps.db, landed, { chain: chainId, ...transactions }), book);
}

/** Books transactions of ours. Stores one that cannot be booked as a failed booking. */
async function bookTransactions(
  deps: TransferDeps,
  { chain }: SolanaChain,
  known: readonly KnownTransaction[],
  book: (db: Db, rows: readonly KnownTransaction[]) => Promise<() => void>,
): Promise<void> {
  await bookEach(deps, { chain, ...transactions, rows: known, book });
}

/** The kind and the subject of our transactions among the failed bookings. */
const transactions = { kind: "transaction" as const, subjectOf: ({ row }: KnownTransaction) => row.hash };

/** Returns the movement of a transfer. A transaction is atomic, so it moved exactly what the transfer says. */
function toSeen({ row, status }: KnownTransaction, transfer: TransferRow): TokenMovement {
  const { token, payer, receiver, amount, authorization_nonce: authorizationNonce } = transfer;
  const parsed = parseTransaction(row.bytes);
  if ("error" in parsed) throw new Error(`transaction ${row.hash} of ours cannot be parsed: ${parsed.error}`);
  return {
    blockId: String(status.slot),
    blockNumber: status.slot,
    txHash: row.hash,
    logIndex: findTransferIndex(parsed, authorizationNonce),
    token,
    payer,
    receiver,
    amount,
    authorizationNonce,
  };
}

/** Returns the fee of a transaction. The first byte of its bytes is the number of signatures. */
function readFee({ bytes, compute_units: units, unit_price: unitPrice }: SolanaTransactionRow): bigint {
  return calculateFee({ signatures: bytes[0] ?? 0, units, unitPrice });
}

async function confirmDeep(
  deps: TransferDeps,
  chain: SolanaChain,
  deep: readonly KnownTransaction[],
  handlers: BookingHandlers,
): Promise<void> {
  if (deep.length === 0) return;
  const found = await listAssigned(
    deps.db,
    deep.map(({ row }) => row),
    ["included"],
  );
  const subjectOf = ({ id }: TransferRow) => id;
  const bookable = await keepBookable(deps.db, found, { chain: chain.chain, kind: "transfer", subjectOf });
  const known = new Map(
    deep.map(({ row, status }) => [`${row.lane_id} ${row.nonce}`, { hash: row.hash, slot: status.slot }]),
  );
  const included = await keepAgreedMovements(
    deps,
    chain,
    bookable,
    ({ lane_id, lane_nonce, token, amount, receiver }) => {
      const at = known.get(`${lane_id} ${lane_nonce}`);
      if (!at) throw new Error("a transfer is assigned to a transaction that was not read");
      return { ...at, token, amount, receiver, isOurs: true };
    },
  );
  const final = Math.max(...deep.map(({ status }) => status.slot));
  for (let from = 0; from < included.length; from += CHUNK)
    await confirmChunk(deps, chain, included.slice(from, from + CHUNK), { final, book: handlers.confirmed });
}

/** Finishes final transactions: books their fees and rents, and ends or unassigns the transfers of failed ones. */
async function finish(
  deps: TransferDeps,
  chain: SolanaChain,
  final: readonly KnownTransaction[],
  handlers: BookingHandlers,
): Promise<void> {
  const due = await keepBookable(deps.db, final, { chain: chain.chain, ...transactions });
  const { rents, unread } = await readRents(chain, due);
  const book = async (db: Db, some: readonly KnownTransaction[]) => {
    const hashes = some.map(({ row }) => row.hash);
    const spent = await finishByHash(db, { chain: chain.chain, hashes });
    if (spent.length > 0) await handlers.gas(db, spent);
    const ours = new Set(spent.map(({ hash }) => hash));
    await bookRents(
      deps,
      db,
      rents.filter(({ hash }) => ours.has(hash)),
      handlers.rent,
    );
    const failed = some.filter(({ status }) => status.error).map(({ row }) => row);
    const reason = "its transaction failed";
    return abandonTransfers(deps, db, await listAssigned(db, failed), {
      payment: reason,
      payout: reason,
      book: handlers.ended,
    });
  };
  const readable = due.filter(({ row }) => !unread.has(row.hash));
  await bookTransactions(deps, chain, readable, book);
  // A later pass that can read these transactions finishes them.
  for (const error of unread.values()) throw error;
}

/** Returns included transactions that no endpoint knows any more. */
async function listVanished(
  deps: TransferDeps,
  chain: SolanaChain,
  tracked: readonly TrackedTransaction[],
): Promise<TrackedTransaction[]> {
  const missing = tracked.filter(({ row, status }) => row.state === "included" && !status);
  const since = Math.max(0, ...missing.map(({ row }) => row.slot ?? 0));
  const rows = missing.map(({ row }) => row);
  const never = await listNeverIncluded(deps, chain, rows, { since });
  return missing.filter(({ row }) => never.has(row.hash));
}

/**
 * Reverts transactions whose slot disappeared, which can happen to a confirmed slot that is not final. The same bytes can be
 * included again. Confirmed transfers stay confirmed: a status that was returned is never taken back.
 */
async function revert(
  deps: TransferDeps,
  chain: SolanaChain,
  gone: readonly Pick<TrackedTransaction, "row">[],
): Promise<void> {
  if (gone.length === 0) return;
  const rows = gone.map(({ row }) => row);
  const hashes = rows.map(({ hash }) => hash);
  const at = deps.now();
  const confirmed = await deps.db.transaction().execute(async (db) => {
    // Not the observation of another transaction that made one of these transfers.
    const blocks = rows.flatMap(({ slot }) => slot ?? []);
    const orphaned = await orphanTransactions(db, { chain: chain.chain, txHashes: hashes, blocks });
    const assigned = await listAssigned(db, rows, ["included", "confirmed"]);
    const proved = assigned.filter(({ id }) => orphaned.has(id));
    await revertLanded(db, { chain: chain.chain, hashes });
    await deleteFailedMovements(db, { chain: chain.chain, txHashes: hashes });
    const ids = proved.filter(({ state }) => state === "included").map(({ id }) => id);
    await moveRows(db, "transfer", { ids, from: "included", to: "assigned", at, detail: { slotGone: true } });
    return proved.filter(({ state }) => state === "confirmed").map(({ id }) => id);
  });
  deps.metrics.reorgs.inc({ chain: chain.chain });
  const facts = { chain: chain.chain, transactions: hashes };
  if (confirmed.length > 0) {
    deps.metrics.finalReorgs.inc({ chain: chain.chain });
    deps.log.error({ ...facts, confirmed }, "confirmed slots disappeared");
  } else deps.log.warn(facts, "slots with transactions of ours disappeared; the same bytes are broadcast again");
}
