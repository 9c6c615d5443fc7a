import { type FailedKey, type FailedMovement, insertFailure } from "../db/queries/failed-bookings.ts";
import { isRowError } from "../db/row-errors.ts";
import type { Db, FailedKind } from "../db/tables.ts";
import { cleanText } from "../runtime/clean-text.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/** Longest error text that is stored, characters. */
const MAX_ERROR_LENGTH = 500;

/**
 * Books rows in one database transaction, and calls the function that the booking returns after the commit. When a row
 * makes the booking fail, the rows are halved until the failing row is alone: it is stored as a failed booking, and all
 * other rows are booked. Throws transient errors (a connection, a deadlock, a timeout) and stores no failed booking then.
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
  if (rows.length === 1)
    return storeFailedBooking(deps, deps.db, { chain, kind, subject: subjectOf(first) }, booked.error);
  const middle = rows.length >> 1;
  await bookEach(deps, { ...work, rows: rows.slice(0, middle) });
  await bookEach(deps, { ...work, rows: rows.slice(middle) });
}

/** Stores and logs a failed booking. @param of the movement that could not be recorded, for that kind of failure */
export async function storeFailedBooking(
  deps: Pick<TransferDeps, "log">,
  db: Db,
  key: FailedKey,
  error: unknown,
  of?: FailedMovement,
): Promise<void> {
  const text = cleanText(error instanceof Error ? error.message : String(error), MAX_ERROR_LENGTH);
  await insertFailure(db, { ...key, error: text, of });
  deps.log.error({ ...key, error: text }, "row cannot be booked and is stored as a failed booking");
}
