import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "vitest";

const folder = new URL("../../../db/migrations/", import.meta.url);
/** Those before it ran when no table was large. */
const FIRST_ON_LARGE_TABLES = "0014";

/** Tables that a migration builds an index on within its transaction, and that it has not made itself. */
function listLockedTables(source: string): string[] {
  const inTransaction = source.split("export const concurrentIndexes")[0] ?? "";
  const made = new Set([...inTransaction.matchAll(/create table (\w+)/g)].map(([, table]) => table));
  const indexed = [...inTransaction.matchAll(/create (unique )?index \w+\s+on (\w+)/g)];
  return indexed.flatMap(([, unique, table]) => (unique || made.has(table) ? [] : [table ?? ""]));
}

test("a migration builds indexes on tables that are there before it outside of its transaction", async () => {
  for (const file of await readdir(folder)) {
    if (file < FIRST_ON_LARGE_TABLES) continue;
    const locked = listLockedTables(await readFile(new URL(file, folder), "utf8"));
    expect(locked, `${file} keeps these tables from being written: name the index in concurrentIndexes`).toEqual([]);
  }
});

test("an index on a table of an earlier migration is noticed", () => {
  expect(listLockedTables("`create table a (b int)`, 'create index a_b on a (b)'")).toEqual([]);
  expect(listLockedTables("'create index payment_b on payment (b)'")).toEqual(["payment"]);
  expect(listLockedTables("export const concurrentIndexes = { payment_b: 'on payment (b)' }")).toEqual([]);
});
