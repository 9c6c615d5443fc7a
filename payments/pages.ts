import { done, type Result, refuse } from "./errors.ts";

/** One page of a list. `nextCursor` is null on the last one. */
export type Page<T> = { items: T[]; nextCursor: string | null };

/**
 * Cuts what was read (one more than the limit) into a page.
 * @param keyOf what the rows are ordered by: where the next page begins
 */
export function toPage<T>(rows: readonly T[], limit: number, keyOf: (row: T) => string[]): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items, nextCursor: more ? Buffer.from(JSON.stringify(keyOf(last))).toString("base64url") : null };
}

/**
 * The key in a cursor that `toPage` gave; undefined for the first page. Callers must not read anything into cursors.
 * Refuses with `params_validation` what is none of ours.
 * @param length how many texts the key has; the first one is a time or a whole number
 */
export function readCursor(cursor: string | undefined, length: number): Result<string[] | undefined> {
  if (cursor === undefined) return done(undefined);
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (isKey(key) && key.length === length && isOrdered(key[0])) return done(key);
  } catch {
    // Falls through to the refusal.
  }
  return refuse("params_validation", "cursor: expected the nextCursor of the page before");
}

const isKey = (key: unknown): key is string[] =>
  Array.isArray(key) && key.every((part) => typeof part === "string" && /^[\w:./+-]{1,128}$/.test(part));

const isOrdered = (text: string | undefined): boolean =>
  text !== undefined &&
  (/^\d{1,78}$/.test(text) || /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text)) &&
  (!text.includes("-") || !Number.isNaN(Date.parse(text)));
