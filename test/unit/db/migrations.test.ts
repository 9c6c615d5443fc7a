import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "vitest";

const folder = new URL("../../../db/migrations/", import.meta.url);

/** Returns the tables that a migration indexes within its transaction although it has not created them. */
function listLockedTables(source: string): string[] {
  const inTransaction = source.split("export const concurrentIndexes")[0] ?? "";
  const made = new Set([...inTransaction.matchAll(/create table (\w+)/g)].map(([, table]) => table));
  const indexed = [...inTransaction.matchAll(/create (unique )?index \w+\s+on (\w+)/g)];
  return indexed.flatMap(([, unique, table]) => (unique || made.has(table) ? [] : [table ?? ""]));
}

test("a migration builds indexes on existing tables outside its transaction", async () => {
  for (const file of (await readdir(folder)).filter((name) => name.endsWith(".ts"))) {
    const locked = listLockedTables(await readFile(new URL(file, folder), "utf8"));
    expect(locked, `${file} blocks writes to these tables: list the index in concurrentIndexes`).toEqual([]);
  }
});

test("an index on a table of an earlier migration is found", () => {
  expect(listLockedTables("`create table a (b int)`, 'create index a_b on a (b)'")).toEqual([]);
  expect(listLockedTables("'create index payment_b on payment (b)'")).toEqual(["payment"]);
  expect(listLockedTables("export const concurrentIndexes = { payment_b: 'on payment (b)' }")).toEqual([]);
});
