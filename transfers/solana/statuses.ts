import type { SeenTransfer } from "../../chains/movements.ts";
import { feeOf } from "../../chains/solana/fees.ts";
import type { SolanaChain } from "../../chains/solana/open.ts";
import { listNeverSeen, readStatuses, type Status } from "../../chains/solana/reads.ts";
import { deleteFailedMovements, keepBookable } from "../../db/failed-bookings.ts";
import { moveRows } from "../../db/moves.ts";
import { orphanProofs } from "../../db/sightings.ts";
import { finishByHash, markLanded, unmarkLanded } from "../../db/solana-transactions.ts";
import type { Db } from "../../db/tables.ts";
import type { TransactionRow } from "../../db/transactions.ts";
import { listCarried, type TransferRow } from "../../db/transfers.ts";
import { attemptAll } from "../attempt-all.ts";
import type { Books } from "../books.ts";
import { confirmChunk } from "../confirm.ts";
import type { TransferDeps } from "../deps.ts";
import { bookEach } from "../failed-bookings.ts";
import { recordBlocks } from "../record.ts";
import { keepAgreed } from "./agreement.ts";
import { giveUp } from "./dead.ts";
import type { Followed } from "./followed.ts";
import { bookRents, readRents } from "./rents.ts";

/** Beyond this age a status is looked for in the whole history: nodes keep only the newest at hand, milliseconds. */
const RECENT_MS = 45_000;
/** Transfers confirmed in one database transaction. */
const CHUNK = 100;

/** Asks for the statuses of transactions, 256 to a call. Throws ChainFault. */
export async function readFollowed(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly TransactionRow[],
): Promise<Followed[]> {
  const isRecent = (row: TransactionRow) => deps.now().getTime() - row.created_at.getTime() < RECENT_MS;
  const [recent, old] = [rows.filter(isRecent), rows.filter((row) => !isRecent(row))];
  const ask = async (some: readonly TransactionRow[], history: boolean): Promise<Followed[]> => {
    if (some.length === 0) return [];
    const hashes = some.map(({ hash }) => hash);
    const { slot, statuses } = await readStatuses(chain, hashes, { history });
    return some.map((row, index) => ({ row, status: statuses[index], slot }));
  };
  return (await Promise.all([ask(recent, false), ask(old, true)])).flat();
}

/** True when a status is as deep as the network's policy calls confirmed. */
export function isConfirmed(chain: SolanaChain, status: Status): boolean {
  return status.depth === "finalized" || status.depth === chain.network.finality;
}

/**
 * Writes down what statuses say: a transaction that is at least `confirmed` is included, and what it was to move has
 * moved, all of it, unless it failed; one that is final has cost its fee; what has vanished from its slot may land again.
 * A step that fails keeps no other from being taken. Throws what failed first, after all of them.
 */
export async function followStatuses(
  deps: TransferDeps,
  chain: SolanaChain,
  followed: readonly Followed[],
  books: Books,
): Promise<void> {
  const standing = followed.flatMap(({ row, status }) => (status ? [{ row, status }] : []));
  const moved = standing.filter(({ row, status }) => row.state === "included" && status.slot !== row.block_number);
  const isNew = (one: Standing) => one.row.state !== "included" || moved.includes(one);
  const landed = standing.filter((one) => one.status.depth !== "processed" && isNew(one));
  const deep = standing.filter(({ status }) => !status.error && isConfirmed(chain, status));
  const final = standing.filter(({ status }) => status.depth === "finalized");
  await attemptAll([
    () => takeBack(deps, chain, moved),
    () => recordLanded(deps, chain, landed, books),
    () => confirmDeep(deps, chain, deep, books),
    () => finish(deps, chain, final, books),
    // Last: it needs two endpoints, and nothing else waits for them.
    async () => takeBack(deps, chain, await listVanished(chain, followed)),
  ]);
}

type Standing = { row: TransactionRow; status: Status };

async function recordLanded(
  deps: TransferDeps,
  chain: SolanaChain,
  landed: readonly Standing[],
  books: Books,
): Promise<void> {
  const chainId = chain.chain;
  const book = async (db: Db, some: readonly Standing[]) => {
    const good = some.filter(({ status }) => !status.error);
    const carried = await listCarried(
      db,
      good.map(({ row }) => row),
      // What was confirmed before its slot went is proved anew.
      ["carried", "confirmed"],
    );
    const seen = good.flatMap((one) =>
      carried
        .filter((transfer) => transfer.lane_id === one.row.lane_id && transfer.lane_nonce === one.row.nonce)
        .map((transfer, index) => toSeen(one, transfer, index)),
    );
    const recorded = await recordBlocks(db, deps, chain, { seen, landed: [], bound: books.bound });
    const landings = some.map(({ row, status }) => {
      return { hash: row.hash, slot: status.slot, fee: readFee(row), failed: status.error !== undefined };
    });
    await markLanded(db, { chain: chainId, landings });
    return () => {
      recorded();
      for (const { row, status } of some) {
        deps.metrics.transactions.inc({ chain: chainId, state: status.error ? "reverted" : "included" });
        if (status.error) deps.log.warn({ chain: chainId, tx: row.hash, error: status.error }, "a transaction failed");
      }
    };
  };
  await bookTransactions(deps, chain, await keepBookable(deps.db, landed, { chain: chainId, ...transactions }), book);
}

/** Books transactions of ours; one that cannot be booked is stored as a failed booking, alone. */
async function bookTransactions(
  deps: TransferDeps,
  { chain }: SolanaChain,
  standing: readonly Standing[],
  book: (db: Db, rows: readonly Standing[]) => Promise<() => void>,
): Promise<void> {
  await bookEach(deps, { chain, ...transactions, rows: standing, book });
}

/** How transactions of ours are named among the failed bookings. */
const transactions = { kind: "transaction" as const, subjectOf: ({ row }: Standing) => row.hash };

/** All instructions of a transaction happen or none does, so what it was to move is what it has moved. */
function toSeen({ row, status }: Standing, transfer: TransferRow, index: number): SeenTransfer {
  const { token, payer, receiver, amount, authorization_nonce: authorizationNonce } = transfer;
  return {
    ...{ blockHash: String(status.slot), blockNumber: status.slot, txHash: row.hash, logIndex: index },
    ...{ token, payer, receiver, amount, authorizationNonce },
  };
}

/** The first byte of a transaction counts its signatures. */
function readFee({ bytes, gas_limit: units, max_fee_per_gas: unitPrice }: TransactionRow): bigint {
  return feeOf({ signatures: bytes[0] ?? 0, units, unitPrice });
}

async function confirmDeep(
  deps: TransferDeps,
  chain: SolanaChain,
  deep: readonly Standing[],
  books: Books,
): Promise<void> {
  if (deep.length === 0) return;
  const found = await listCarried(
    deps.db,
    deep.map(({ row }) => row),
    ["included"],
  );
  const subjectOf = ({ id }: TransferRow) => id;
  const bookable = await keepBookable(deps.db, found, { chain: chain.chain, kind: "transfer", subjectOf });
  const standing = new Map(
    deep.map(({ row, status }) => [`${row.lane_id} ${row.nonce}`, { hash: row.hash, slot: status.slot }]),
  );
  const included = await keepAgreed(deps, chain, bookable, ({ lane_id, lane_nonce, token, amount, receiver }) => {
    const at = standing.get(`${lane_id} ${lane_nonce}`);
    if (!at) throw new Error("a transfer was found by another transaction than its own");
    return { ...at, token, amount, receiver, isOurs: true };
  });
  const final = Math.max(...deep.map(({ status }) => status.slot));
  for (let from = 0; from < included.length; from += CHUNK)
    await confirmChunk(deps, chain, included.slice(from, from + CHUNK), { final, book: books.confirmed });
}

/** Final transactions: what they cost is booked, and what a failed one was to make has not happened by it. */
async function finish(deps: TransferDeps, chain: SolanaChain, final: readonly Standing[], books: Books): Promise<void> {
  const due = await keepBookable(deps.db, final, { chain: chain.chain, ...transactions });
  const { rents, unread } = await readRents(chain, due);
  const book = async (db: Db, some: readonly Standing[]) => {
    const hashes = some.map(({ row }) => row.hash);
    const spent = await finishByHash(db, { chain: chain.chain, hashes });
    if (spent.length > 0) await books.gas(db, spent);
    const ours = new Set(spent.map(({ hash }) => hash));
    await bookRents(
      deps,
      db,
      rents.filter(({ hash }) => ours.has(hash)),
      books.rent,
    );
    const failed = some.filter(({ status }) => status.error).map(({ row }) => row);
    const reason = "its transaction failed";
    return giveUp(deps, db, await listCarried(db, failed), { payment: reason, payout: reason, book: books.ended });
  };
  const readable = due.filter(({ row }) => !unread.has(row.hash));
  await bookTransactions(deps, chain, readable, book);
  // Those are final by the next pass that can read them.
  for (const error of unread.values()) throw error;
}

/** Included transactions that no endpoint knows any more. */
async function listVanished(chain: SolanaChain, followed: readonly Followed[]): Promise<Followed[]> {
  const missing = followed.filter(({ row, status }) => row.state === "included" && !status);
  const hashes = missing.map(({ row }) => row.hash);
  const since = Math.max(0, ...missing.map(({ row }) => row.block_number ?? 0));
  const never = await listNeverSeen(chain, hashes, { since });
  return missing.filter(({ row }) => never.has(row.hash));
}

/**
 * A slot that was confirmed can still go, before it is final: what was included in it may land again, by the same bytes.
 * What was told of it stays.
 */
async function takeBack(deps: TransferDeps, chain: SolanaChain, gone: readonly Pick<Followed, "row">[]): Promise<void> {
  if (gone.length === 0) return;
  const rows = gone.map(({ row }) => row);
  const hashes = rows.map(({ hash }) => hash);
  const at = deps.now();
  const told = await deps.db.transaction().execute(async (db) => {
    const proved = await listCarried(db, rows, ["included", "confirmed"]);
    await orphanProofs(
      db,
      proved.map(({ id }) => id),
    );
    await unmarkLanded(db, { chain: chain.chain, hashes });
    await deleteFailedMovements(db, { chain: chain.chain, txHashes: hashes });
    const ids = proved.filter(({ state }) => state === "included").map(({ id }) => id);
    await moveRows(db, "transfer", { ids, from: "included", to: "carried", at, detail: { slotGone: true } });
    return proved.filter(({ state }) => state === "confirmed").map(({ id }) => id);
  });
  deps.metrics.reorgs.inc({ chain: chain.chain });
  const facts = { chain: chain.chain, transactions: hashes };
  if (told.length > 0) deps.log.error({ ...facts, confirmed: told }, "slots are gone that were called confirmed");
  else deps.log.warn(facts, "slots are gone with transactions of ours; the same bytes go out again");
}
