import type { Chain, Token } from "../chains/chain.ts";
import { addDust, closeDust, type DustRow, listBlockTimes, listOpenDust, lockDust } from "../db/queries/dust.ts";
import { lockUnassigned } from "../db/queries/transfers.ts";
import {
  formatObservationKey,
  listUnmatched,
  lockUnmatched,
  markBooked,
  type UnmatchedObservation,
} from "../db/queries/unmatched-movements.ts";
import type { Db } from "../db/tables.ts";
import { bookEach } from "./book-each.ts";
import { moveBookings } from "./move-bookings.ts";
import { payWithUnmatched } from "./pay-with-unmatched.ts";
import type { BookUnsolicited } from "./record-movements.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/** Books unmatched movements of the treasury, in the database transaction that marks them as booked. */
export type BookUnmatched = (db: Db, unmatched: readonly UnmatchedObservation[]) => Promise<void>;

/** Books a day's dust deposits as one entry. Returns the subject of the ledger group. */
export type BookDust = (db: Db, dust: DustRow) => Promise<string>;

/** Movements booked in one database transaction. */
const CHUNK = 100;

/**
 * Books final unmatched movements: late, wrong or duplicate payments become exceptions, others pay (`payWithUnmatched`). Deposits below
 * the dust amount of their asset are only added up by day, see `bookDust`: anyone can make thousands of them at no cost, and each would
 * be a booking, a log line and an exception for an operator to close. A movement that a reorg below the final height has moved to
 * another block is not booked again, see `moveBookings`. Returns true if movements have paid transfers, which the caller confirms then.
 * @param args.keepAgreedMovements returns the movements that can be booked now, all by default
 */
export async function bookUnmatched(
  deps: TransferDeps,
  chain: Chain,
  args: {
    final: number;
    book: BookUnmatched;
    unsolicited: BookUnsolicited;
    keepAgreedMovements?: (rows: readonly UnmatchedObservation[]) => Promise<UnmatchedObservation[]>;
  },
): Promise<boolean> {
  const keepAgreedMovements = args.keepAgreedMovements ?? (async (rows) => [...rows]);
  let hasPaid = false;
  const held: UnmatchedObservation[] = [];
  const book = async (db: Db, listed: readonly UnmatchedObservation[]) => {
    // Lock order: transfers, then movements, as where movements are recorded (avoids deadlock).
    await lockUnassigned(
      db,
      listed.flatMap((row) => row.authorization_nonce ?? []),
    );
    const locked = await lockUnmatched(db, listed);
    const moved = await moveBookings(db, chain.chain, locked);
    const unmatched = locked.filter((row) => !moved.includes(row));
    const { paying, opened } = await payWithUnmatched(db, deps, chain, { unmatched, unsolicited: args.unsolicited });
    const rows = unmatched.filter((row) => !paying.includes(row));
    const { dust = [], others = [] } = Object.groupBy(rows, (row) => (isDust(chain, row) ? "dust" : "others"));
    await markBooked(db, others, null);
    if (others.length > 0) await args.book(db, others);
    await keepDust(deps, db, chain, dust);
    return () => {
      opened();
      hasPaid ||= paying.length > 0;
      logUnmatched(deps, chain, others);
      for (const { tx_hash: tx, block_number: block } of moved)
        deps.log.warn({ chain: chain.chain, tx, block }, "a reorg has moved a booked movement to another block");
    };
  };
  for (let full = true; full; ) {
    const listed = await listUnmatched(deps.db, { chain: chain.chain, upTo: args.final, limit: CHUNK, except: held });
    const rows = await keepAgreedMovements(listed);
    held.push(...listed.filter((row) => !rows.includes(row)));
    await bookEach(deps, { chain: chain.chain, kind: "unmatched", rows, subjectOf: formatObservationKey, book });
    full = listed.length === CHUNK;
  }
  return hasPaid;
}

/** Returns true for a deposit that is booked together with others of its day. Movements out of the treasury never are. */
function isDust(
  chain: Tokens & { treasury: string },
  row: Pick<UnmatchedObservation, "token" | "payer" | "receiver" | "amount">,
): boolean {
  const token = findToken(chain, row);
  return (
    token !== undefined &&
    row.amount < BigInt(token.dust) &&
    row.receiver === chain.treasury &&
    row.payer !== row.receiver
  );
}

type Tokens = { tokens: ReadonlyMap<string, Pick<Token, "asset" | "token" | "dust">> };

function findToken(chain: Tokens, { token }: Pick<UnmatchedObservation, "token">) {
  return [...chain.tokens.values()].find((one) => one.token === token);
}

function logUnmatched(
  { log }: Pick<TransferDeps, "log">,
  { chain }: Chain,
  unmatched: readonly UnmatchedObservation[],
): void {
  for (const { tx_hash: tx, payer, receiver, token } of unmatched)
    log.error({ chain, tx, payer, receiver, token }, "movement matches no payment or payout");
}

/** Adds dust deposits to the sum of their asset and day. */
async function keepDust(
  deps: TransferDeps,
  db: Db,
  chain: Chain,
  dust: readonly UnmatchedObservation[],
): Promise<void> {
  if (dust.length === 0) return;
  const dayOf = await readDays(deps, db, chain, [...new Set(dust.map(({ block_number }) => block_number))]);
  const keyOf = (row: UnmatchedObservation) => `${findToken(chain, row)?.asset} ${dayOf(row.block_number)}`;
  // Lock order: by asset and day (avoids deadlock).
  for (const [key, rows] of [...Map.groupBy(dust, keyOf)].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [asset = "", day = ""] = key.split(" ");
    const amount = rows.reduce((sum, row) => sum + row.amount, 0n);
    const lastBlock = Math.max(...rows.map(({ block_number }) => block_number));
    const sum = { chain: chain.chain, asset, day, amount, transfers: rows.length, lastBlock };
    await markBooked(db, rows, await addDust(db, sum));
  }
}

/** Returns the UTC days of blocks, YYYY-MM-DD. Returns today where block times are not stored (Solana). */
async function readDays(
  deps: TransferDeps,
  db: Db,
  { chain }: Pick<Chain, "chain">,
  numbers: readonly number[],
): Promise<(block: number) => string> {
  const times = await listBlockTimes(db, { chain, numbers });
  return (block) => (times.get(block) ?? deps.now()).toISOString().slice(0, 10);
}

/**
 * Books the dust deposits of every day that ended before the newest final block: one exception and one log line for each
 * asset and day. Until then they count as in flight.
 */
export async function bookDust(
  deps: TransferDeps,
  { chain }: Pick<Chain, "chain">,
  { final, book }: { final: number; book: BookDust },
): Promise<void> {
  const open = await listOpenDust(deps.db, chain);
  if (open.length === 0) return;
  const today = (await readDays(deps, deps.db, { chain }, [final]))(final);
  const close = async (db: Db, days: readonly DustRow[]) => {
    const closed = await lockDust(db, days);
    for (const dust of closed) await closeDust(db, { id: dust.id, subject: await book(db, dust) });
    return () => {
      for (const { asset, day, transfers, amount } of closed)
        deps.log.warn(
          { chain, asset, day, transfers, amount: String(amount) },
          "dust of a day is booked as one exception",
        );
    };
  };
  const rows = open.filter(({ day }) => day < today);
  await bookEach(deps, { chain, kind: "dust", rows, subjectOf: ({ asset, day }) => `${asset}/${day}`, book: close });
}
