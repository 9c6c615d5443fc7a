import { done, type Result, refuse } from "./errors.ts";

/** One page of a list. `nextCursor` is null on the last one. */
export type Page<T> = { items: T[]; nextCursor: string | null };

/**
 * Cuts what was read (one more than the limit) into a page.
 * @param keyOf what the rows are ordered by: where the next page begins
 */
export function toPage<T>(rows: readonly T[], limit: number, keyOf: (row: T) => [string, string]): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items, nextCursor: more ? Buffer.from(JSON.stringify(keyOf(last))).toString("base64url") : null };
}

/**
 * The key in a cursor that `toPage` gave; undefined for the first page. Callers must not read anything into cursors.
 * Refuses with `params_validation` what is none of ours.
 * @param order what the list is ordered by; a cursor of another order is none of this one's
 */
export function readCursor(cursor: string | undefined, order: "time" | "amount"): Result<[string, string] | undefined> {
  if (cursor === undefined) return done(undefined);
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (isKey(key) && isOf[order](key[0])) return done(key);
  } catch {
    // Falls through to the refusal.
  }
  return refuse("params_validation", "cursor: expected the nextCursor of the page before");
}

const isKey = (key: unknown): key is [string, string] =>
  Array.isArray(key) &&
  key.length === 2 &&
  key.every((part) => typeof part === "string") &&
  /^\w{1,64}$/.test(String(key[1]));

const isOf = {
  // To and fro, because a Date takes 30 February for 2 March, and Postgres does not. It has no year 0 either.
  time: (text: string) =>
    /^(?!0000)\d{4}-/.test(text) && !Number.isNaN(Date.parse(text)) && new Date(text).toISOString() === text,
  amount: (text: string) => /^\d{1,78}$/.test(text),
};
