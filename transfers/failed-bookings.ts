import { type FailedKey, type FailedMovement, insertFailure } from "../db/failed-bookings.ts";
import { isRowError } from "../db/row-errors.ts";
import type { Db, FailedKind } from "../db/tables.ts";
import { cleanText } from "../ops/clean-text.ts";
import type { TransferDeps } from "./deps.ts";

/** What is kept of an error's text, characters. */
const LONGEST_ERROR = 500;

/**
 * Books rows in one database transaction, and runs what the booking gives to be done after the commit. When a row makes
 * it fail, the rows are halved until the failing one is alone: that one is stored as a failed booking, and all others
 * are booked. Whatever may pass (a connection, a deadlock, a timeout) is thrown, and nothing is stored as failed.
 */
export async function bookEach<R>(
  deps: Pick<TransferDeps, "db" | "log">,
  work: {
    chain: string;
    kind: FailedKind;
    rows: readonly R[];
    subjectOf: (row: R) => string;
    book: (db: Db, rows: readonly R[]) => Promise<() => void>;
  },
): Promise<void> {
  const { chain, kind, rows, subjectOf } = work;
  const [first] = rows;
  if (first === undefined) return;
  const booked = await deps.db
    .transaction()
    .execute((db) => work.book(db, rows))
    .then(
      (afterCommit) => ({ afterCommit }),
      (error: unknown) => {
        if (!isRowError(error)) throw error;
        return { error };
      },
    );
  if ("afterCommit" in booked) return booked.afterCommit();
  if (rows.length === 1) return storeFailure(deps, deps.db, { chain, kind, subject: subjectOf(first) }, booked.error);
  const middle = rows.length >> 1;
  await bookEach(deps, { ...work, rows: rows.slice(0, middle) });
  await bookEach(deps, { ...work, rows: rows.slice(middle) });
}

/** Stores that a row could not be booked, and logs it. @param of the movement, when that is what could not be written */
export async function storeFailure(
  deps: Pick<TransferDeps, "log">,
  db: Db,
  key: FailedKey,
  error: unknown,
  of?: FailedMovement,
): Promise<void> {
  const text = cleanText(error instanceof Error ? error.message : String(error), LONGEST_ERROR);
  await insertFailure(db, { ...key, error: text, of });
  deps.log.error(
    { ...key, error: text },
    "a row cannot be booked: it is kept as a failed booking, and the rest goes on",
  );
}
