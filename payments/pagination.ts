import { done, type Result, refuse } from "./error-codes.ts";

/** One page of a list. `nextCursor` is null on the last page. */
export type Page<T> = { items: T[]; nextCursor: string | null };

/**
 * Makes a page of the rows that were read with a limit of `limit + 1`.
 * @param keyOf returns the sort key of a row, which becomes the cursor
 */
export function toPage<T>(rows: readonly T[], limit: number, keyOf: (row: T) => [string, string]): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items, nextCursor: more ? Buffer.from(JSON.stringify(keyOf(last))).toString("base64url") : null };
}

/**
 * Returns the sort key in a cursor that `toPage` made; undefined for the first page. Cursors are opaque to callers.
 * Refuses an invalid cursor with `params_validation`.
 * @param order the list's sort order; a cursor of another order is invalid
 */
export function readCursor(cursor: string | undefined, order: "time" | "amount"): Result<[string, string] | undefined> {
  if (cursor === undefined) return done(undefined);
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (isKey(key) && isOf[order](key[0])) return done(key);
  } catch {
    // An unparsable cursor is refused below.
  }
  return refuse("params_validation", "cursor: expected the nextCursor of the page before");
}

const isKey = (key: unknown): key is [string, string] =>
  Array.isArray(key) &&
  key.length === 2 &&
  key.every((part) => typeof part === "string") &&
  /^\w{1,64}$/.test(String(key[1]));

const isOf = {
  // The round trip rejects dates such as 30 February: a Date reads it as 2 March, Postgres fails. Nor has it a year 0.
  time: (text: string) =>
    /^(?!0000)\d{4}-/.test(text) && !Number.isNaN(Date.parse(text)) && new Date(text).toISOString() === text,
  amount: (text: string) => /^\d{1,78}$/.test(text),
};
